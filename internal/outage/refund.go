// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A Refund gives back an amount to a local bucket.
type Refund struct {
	Account *Account     // that the take was decided by; nil where there were too many
	Share   bucket.Limit // of the local bucket
	Taken   bucket.Taken
	Cost    bucket.Tokens
}

// Refund gives tokens back to the local bucket that they were spent from, and reports
// whether it did. It does not where they have been charged to the store meanwhile: the
// store is then to be given back to.
func (f *Fallback) Refund(ctx context.Context, r Refund) bool {
	a := r.Account
	if a == nil {
		return true // nobody will be charged for it
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	local := []store.Refund{{Charge: store.Charge{Key: a.key, Limit: r.Share, Cost: r.Cost}, Taken: r.Taken}}
	return f.local.Refund(ctx, local, "") == nil
}

// IsOpen reports whether the costs of the account are yet to be charged.
func (a *Account) IsOpen() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.closed
}
