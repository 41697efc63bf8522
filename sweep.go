// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"math/rand/v2"
	"time"
)

// sweepEvery is how often a page of the ledger is looked through for accounts that
// need not be charged any more, while there are any.
const sweepEvery = 100 * time.Millisecond

// Recover charges to the store what was spent in its place while it did not
// answer: see [Config.Local]. Takes do so for the keys they need, and nobody has to
// call it. But until a process has, others can take from the store what it has
// spent already: so call it when the store is back, or now and then. It ends with
// the first failure of the store. Where nothing is to be charged it does nothing,
// and asks nobody.
func (l *Limiter) Recover(ctx context.Context) error {
	f := l.fallback
	if f == nil || f.ledger.size.Load() == 0 {
		return nil
	}
	// A key that fails for good shall not keep the same others from their turn.
	first := rand.N(len(f.ledger.pages))
	for i := range f.ledger.pages {
		for _, a := range f.ledger.pages[(first+i)%len(f.ledger.pages)].list() {
			if ctx.Err() != nil {
				return ended(ctx)
			}
			if err := f.settle(ctx, a, time.Now().Add(l.config.Deadline)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweep closes accounts of which everything has come back: their clients may never
// come again.
func (f *fallback) sweep() {
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

// forget drops what is known of keys that have been reset.
func (f *fallback) forget(charges []Charge) {
	for i := range charges {
		f.known.forget(charges[i].Key)
		a := f.ledger.find(charges[i].Key)
		if a == nil {
			continue
		}
		a.mu.Lock()
		if !a.closed {
			f.end(context.Background(), a)
		}
		a.mu.Unlock()
	}
}
