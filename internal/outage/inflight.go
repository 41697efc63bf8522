// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"
	"hash/maphash"
	"sync/atomic"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// inFlightSlots is how many counters there are for takes in flight, of 8 bytes each. Keys
// that share one are each taken for the other's: a local bucket then begins with too
// little, never with too much.
const inFlightSlots = 1 << 12

// inFlight counts what takes of the store cost that have not been answered or decided
// yet. The store may have charged them: a local bucket that begins meanwhile holds their
// cost back.
type inFlight struct {
	seed   maphash.Seed
	slots  [inFlightSlots]atomic.Int64
	begins atomic.Uint64 // local buckets, counted
}

// A departure is a charge of a take in flight.
type departure struct {
	slot *atomic.Int64
	cost bucket.Tokens
}

// A Trip is a take in flight: its charges, and how many local buckets had begun before it.
// The zero Trip has none.
type Trip struct {
	departures []departure
	begins     uint64
}

func newInFlight() *inFlight { return &inFlight{seed: maphash.MakeSeed()} }

func (f *inFlight) slot(key string) *atomic.Int64 {
	return &f.slots[maphash.String(f.seed, key)%inFlightSlots]
}

// Depart counts the charges of a take that is about to be sent to the store, until
// [Trip.Land]. A local bucket that begins after it has seen its charges, so they are
// counted first.
func (f *Fallback) Depart(t *Trip, charges []store.Charge, mode store.Mode) {
	f.flying.depart(t, charges, mode)
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

// Land counts them no more: the take has been answered, or decided locally.
func (t *Trip) Land() {
	for _, d := range t.departures {
		d.slot.Add(-int64(d.cost))
	}
	clear(t.departures)
	t.departures = t.departures[:0]
}

// others returns the cost of all takes of a key in flight except t, and a number for the
// local bucket that begins with this cost held back.
func (f *inFlight) others(key string, t *Trip) (cost bucket.Tokens, number uint64) {
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

// release gives back what an account holds for a take that was in flight when it was
// opened, and that is now decided by it. The local bucket with and without local spending
// changes by the same amount, so that what is to be charged stays the same. Sliding limits
// keep it until it leaves the window.
func (f *Fallback) release(ctx context.Context, a *Account, cost bucket.Tokens, t *Trip) error {
	if len(t.departures) == 0 || t.begins >= a.number || a.held == 0 || cost == 0 {
		return nil
	}
	if g := a.share.Algorithm(); g != bucket.Continuous && g != bucket.Stepped {
		return nil
	}
	now := f.now()
	back := min(cost, a.held, missing(a.base, &a.share, now))
	a.held -= min(cost, a.held)
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
