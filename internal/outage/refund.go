// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A Refund returns an amount to a local bucket.
type Refund struct {
	Account *Account     // of the take; nil above the bound of accounts
	Share   bucket.Limit // of the local bucket
	Taken   bucket.Taken
	Cost    bucket.Tokens
}

// Refund returns tokens to the local bucket that they were taken from, and reports whether it did. It returns
// false if they have already been charged to the store: the caller must then refund to the store.
func (f *Fallback) Refund(ctx context.Context, r Refund) bool {
	a := r.Account
	if a == nil {
		return true // its cost will never be charged
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	local := []store.Refund{{Charge: store.Charge{Key: a.key, Limit: r.Share, Cost: r.Cost}, Taken: r.Taken}}
	return f.local.Refund(ctx, local, "") == nil
}

// IsOpen reports whether the account has uncharged costs.
func (a *Account) IsOpen() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.closed
}
