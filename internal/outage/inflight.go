// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"
	"hash/maphash"
	"sync/atomic"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// inFlightSlots is the number of counters for takes in flight, of 8 bytes each. If keys share a counter, a
// local bucket starts with too few tokens, never with too many.
const inFlightSlots = 1 << 12

// inFlight counts the costs of store takes without an answer or a local decision. The store may have charged
// them, so a local bucket that starts before the answer withholds their cost.
type inFlight struct {
	seed   maphash.Seed
	slots  [inFlightSlots]atomic.Int64
	begins atomic.Uint64 // number of local buckets started
}

// A departure is one charge of a take in flight.
type departure struct {
	slot *atomic.Int64
	cost bucket.Tokens
}

// A Trip is a take in flight: its charges, and the number of local buckets that had started before it. The zero
// Trip has none.
type Trip struct {
	departures []departure
	begins     uint64
}

func newInFlight() *inFlight { return &inFlight{seed: maphash.MakeSeed()} }

func (f *inFlight) slot(key string) *atomic.Int64 {
	return &f.slots[maphash.String(f.seed, key)%inFlightSlots]
}

// StartTrip counts the charges of a take that is about to be sent to the store, until [Trip.End]. It counts them
// before it reads the number of started buckets, so a local bucket that starts later includes them.
func (f *Fallback) StartTrip(t *Trip, charges []store.Charge, mode store.Mode) {
	f.inFlight.depart(t, charges, mode)
}

func (f *inFlight) depart(t *Trip, charges []store.Charge, mode store.Mode) {
	for i := range charges {
		if c := &charges[i]; c.Cost > 0 && !mode.DryRun {
			d := departure{f.slot(c.Key), c.Cost}
			d.slot.Add(int64(d.cost))
			t.departures = append(t.departures, d)
		}
	}
	t.begins = f.begins.Load()
}

// End ends the count after the take has been answered or decided locally.
func (t *Trip) End() {
	for _, d := range t.departures {
		d.slot.Add(-int64(d.cost))
	}
	clear(t.departures)
	t.departures = t.departures[:0]
}

// otherCosts returns the cost of all takes of a key in flight except t. The number identifies the local bucket that
// starts with this cost withheld.
func (f *inFlight) otherCosts(key string, t *Trip) (cost bucket.Tokens, number uint64) {
	number = f.begins.Add(1)
	slot := f.slot(key)
	cost = bucket.Tokens(slot.Load())
	for _, d := range t.departures {
		if d.slot == slot {
			cost -= d.cost
		}
	}
	return max(cost, 0), number
}

// release returns the cost that an account withholds for a take in flight, when that take is decided locally. It returns only
// what exceeds unheld. The local bucket with and without local costs changes by the same amount, so the amount to charge stays the
// same. Sliding limits keep the cost until it leaves the window.
func (f *Fallback) release(ctx context.Context, a *Account, cost bucket.Tokens, t *Trip) error {
	if len(t.departures) == 0 || t.begins >= a.number || a.withheld == 0 || cost == 0 {
		return nil
	}
	if g := a.share.Algorithm(); g != bucket.AlgorithmContinuous && g != bucket.AlgorithmStepped {
		return nil
	}
	above := min(cost, a.unheld)
	a.unheld -= above
	cost -= above
	now := f.now()
	back := min(cost, a.withheld, missingTokens(a.base, &a.share, now))
	a.withheld -= min(cost, a.withheld)
	if back <= 0 {
		return nil
	}
	local := []store.Refund{{Charge: store.Charge{Key: a.key, Limit: a.share, Cost: back}}}
	if err := f.local.Refund(ctx, local, ""); err != nil {
		return err
	}
	a.base = a.base.Refund(now, back)
	if a.attempt != nil {
		a.attempt.through = a.attempt.through.Refund(now, back)
	}
	return nil
}
