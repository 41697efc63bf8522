// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/metehq/mete/store"
)

// sweepEvery is the interval between sweeps of a page of the ledger.
const sweepEvery = 100 * time.Millisecond

// RecoverAll charges the local costs of all keys to the store. It stops at the first store error. Each key may
// take until the deadline of ctx, or as long as within if ctx has none.
func (f *Fallback) RecoverAll(ctx context.Context, within time.Duration) error {
	if f.ledger.size.Load() == 0 {
		return nil
	}
	// Start at a random page, so that a key with a permanent error does not always block the same other keys.
	first := rand.N(len(f.ledger.pages))
	for i := range f.ledger.pages {
		for _, a := range f.ledger.pages[(first+i)%len(f.ledger.pages)].list() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			until, ok := ctx.Deadline()
			if !ok {
				until = time.Now().Add(within)
			}
			if err := f.settle(ctx, a, until); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweep closes accounts with nothing left to charge, because their clients may never return.
func (f *Fallback) sweep() {
	now, last := int64(f.now()), f.lastSweep.Load()
	if now-last < sweepEvery.Microseconds() || !f.lastSweep.CompareAndSwap(last, now) {
		return
	}
	ctx := context.Background()
	for _, a := range f.ledger.nextPage() {
		a.mu.Lock()
		if !a.closed && a.flight == nil {
			attempt := a.attempt
			if due, _, err := f.due(ctx, a); err == nil && due == 0 && a.findNeed() == nil {
				f.closeAccount(ctx, a)
			} else if attempt == nil {
				a.attempt = nil // a new attempt that was not sent
			}
		}
		a.mu.Unlock()
	}
}

// DropFamilies drops the accounts of families that have been reset: see [store.Family]. It resets no bucket
// of another family.
func (f *Fallback) DropFamilies(ctx context.Context, families []string) error {
	f.seen.DropFamilies(families)
	for i := range f.ledger.pages {
		for _, a := range f.ledger.pages[i].list() {
			if slices.Contains(families, store.Family(a.key)) {
				f.drop(a)
			}
		}
	}
	// Keys that did not fit in the ledger have local buckets without accounts.
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

// Drop drops the local state of keys that have been reset.
func (f *Fallback) Drop(charges []store.Charge) {
	for i := range charges {
		f.seen.Remove(charges[i].Key)
		if a := f.ledger.find(charges[i].Key); a != nil {
			f.drop(a)
		}
	}
}

func (f *Fallback) drop(a *Account) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		f.closeAccount(context.Background(), a)
	}
}
