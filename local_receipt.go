// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"

	"github.com/metehq/mete/bucket"
)

// refund gives back to the local bucket that e was spent from. It does not where
// that has been charged to the store meanwhile, which is then to be given back to.
func (f *fallback) refund(ctx context.Context, e *expense, back bucket.Tokens) bool {
	a := e.account
	if a == nil {
		e.Cost -= back // nobody will be charged for it
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	local := []Refund{{Charge: Charge{Key: a.key, Limit: e.share, Cost: back}, Taken: e.taken}}
	if f.store.Refund(ctx, local, "") != nil {
		return false
	}
	e.Cost -= back
	return true
}

// owe charges what was used beyond a reservation: locally, if that is where the
// reservation is still.
func (l *Limiter) owe(ctx context.Context, charges []Charge, r *receipt) ([]bucket.Snapshot, bool, error) {
	mode := Mode{MaxWait: bucket.Forced, Within: r.within}
	for i := range r.enforced {
		if a := r.enforced[i].account; a != nil && a.isOpen() {
			snaps, _, allowed, err := l.fallback.take(ctx, nil, charges, mode, nil, new(trip))
			return snaps, allowed, err
		}
	}
	return l.store.Take(ctx, nil, charges, mode)
}

func (a *account) isOpen() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.closed
}
