// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/metehq/mete/store"
)

// sweepEvery is how often a page of the ledger is looked through for accounts that
// need not be charged any more, while there are any.
const sweepEvery = 100 * time.Millisecond

// RecoverAll charges to the store what was spent locally of all keys. It ends with the
// first failure of the store, and gives each key as long as within.
func (f *Fallback) RecoverAll(ctx context.Context, within time.Duration) error {
	if f.ledger.size.Load() == 0 {
		return nil
	}
	// A key that fails for good shall not keep the same others from their turn.
	first := rand.N(len(f.ledger.pages))
	for i := range f.ledger.pages {
		for _, a := range f.ledger.pages[(first+i)%len(f.ledger.pages)].list() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := f.settle(ctx, a, time.Now().Add(within)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweep closes accounts of which everything has come back: their clients may never
// come again.
func (f *Fallback) sweep() {
	now, last := int64(f.now()), f.lastSweep.Load()
	if now-last < sweepEvery.Microseconds() || !f.lastSweep.CompareAndSwap(last, now) {
		return
	}
	ctx := context.Background()
	for _, a := range f.ledger.next() {
		a.mu.Lock()
		if !a.closed && a.flight == nil {
			attempt := a.attempt
			if due, _, err := f.due(ctx, a); err == nil && due == 0 && a.needy() == nil {
				f.end(ctx, a)
			} else if attempt == nil {
				a.attempt = nil // it was not made
			}
		}
		a.mu.Unlock()
	}
}

// ForgetFamilies drops the accounts of keys of families that have been cleared: see
// [store.Family]. It empties no bucket of another family.
func (f *Fallback) ForgetFamilies(ctx context.Context, families []string) error {
	f.seen.ForgetFamilies(families)
	for i := range f.ledger.pages {
		for _, a := range f.ledger.pages[i].list() {
			if slices.Contains(families, store.Family(a.key)) {
				f.drop(a)
			}
		}
	}
	// Keys beyond the bound of the ledger have local buckets without accounts.
	clearer, ok := store.As[store.Clearer](f.local)
	for from := ""; ok; {
		_, next, err := clearer.ClearFamilies(ctx, families, from)
		if err != nil {
			return err
		}
		from, ok = next, next != ""
	}
	return nil
}

// Forget drops what is known of keys that have been reset.
func (f *Fallback) Forget(charges []store.Charge) {
	for i := range charges {
		f.seen.Forget(charges[i].Key)
		if a := f.ledger.find(charges[i].Key); a != nil {
			f.drop(a)
		}
	}
}

// drop closes an account whose bucket has been reset.
func (f *Fallback) drop(a *Account) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		f.end(context.Background(), a)
	}
}
