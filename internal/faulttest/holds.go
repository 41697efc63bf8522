// SPDX-License-Identifier: Apache-2.0

package faulttest

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/store"
)

const holdCallers = 4

// SettleThroughFaults lets callers hold and settle while disturb loses answers, again and again. A caller repeats each
// call until it has an answer. At the end the bucket misses exactly what the settlements and the open holds charged:
// a repeated call charges and refunds nothing. Each hold takes one of as many slots as there are callers, so a slot that a
// repeated call takes twice denies a hold. The clock of the store must stand still, so that nothing refills.
func SettleThroughFaults(t *testing.T, s mete.Store, disturb func()) {
	t.Helper()
	h := settling(t, s,
		store.Charge{Key: "a", Limit: Limit(1_000_000, bucket.Rate{Tokens: bucket.Token, Per: time.Hour})},
		store.Charge{Key: "b", Limit: Limit(2_000_000, bucket.Rate{Tokens: bucket.Token, Per: time.Hour})})
	h.slot = &store.Charge{Key: "c", Limit: slotsLimit(holdCallers, time.Hour), Cost: bucket.Token}
	h.run(25, func(int) { disturb() })
	h.wantMissing(h.charged, h.charged)
}

// SettleCalendarsThroughFaults is [SettleThroughFaults] with a budget of a day and one of a year. The clock of the store must
// show clock. It passes midnight between lost answers, and between holds and their settlements. The budget of the year counts each
// call once. A settlement after midnight returns nothing to the budget of the day, and still charges an excess.
func SettleCalendarsThroughFaults(t *testing.T, s mete.Store, clock *atomic.Int64, disturb func()) {
	t.Helper()
	noon := time.Date(2026, 3, 28, 11, 0, 0, 0, time.UTC) // in Berlin; the next day has 23 hours
	clock.Store(int64(bucket.At(noon)))
	h := settling(t, s,
		store.Charge{Key: "day", Limit: calendarLimit(bucket.CalendarDay)},
		store.Charge{Key: "year", Limit: calendarLimit(bucket.CalendarYear)})
	h.run(8, func(int) { disturb() })
	h.wantMissing(h.charged, h.charged)

	h.run(8, func(i int) {
		disturb()
		if i%4 == 1 {
			clock.Add((24 * time.Hour).Microseconds())
		}
	})
	clock.Add((24 * time.Hour).Microseconds())
	h.wantMissing(0, h.charged)

	today := h.take(100 * bucket.Token)
	excess := h.settleOpen(disturb)
	h.wantMissing(today+excess, h.charged)
}

func calendarLimit(window bucket.CalendarWindow) bucket.Limit {
	budget := 1_000_000 * bucket.Token
	l, _, err := bucket.Spec{
		Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorCalendar, Capacity: budget,
		Calendar: bucket.Calendar{Window: window, Zone: "Europe/Berlin"}, Rate: bucket.Rate{Tokens: budget, Per: window.Length()},
	}.Compile()
	if err != nil {
		panic(err)
	}
	return l
}

// heldCost is the cost of each hold.
const heldCost = 10 * bucket.Token

// A settler has callers that hold and settle. It knows the charge of all its calls.
type settler struct {
	t        *testing.T
	store    mete.Store
	holder   store.Holder
	charges  []store.Charge // of each hold
	slot     *store.Charge  // of each hold as well, after the others; nil if it takes none
	answers  atomic.Int64
	repeated atomic.Int64 // calls

	mu      sync.Mutex
	charged bucket.Tokens // by all calls, from each bucket
	holds   int
	open    []string // holds
}

func settling(t *testing.T, s mete.Store, charges ...store.Charge) *settler {
	t.Helper()
	h, ok := s.(store.Holder)
	if !ok {
		t.Fatalf("%T has no holds", s)
	}
	for i := range charges {
		charges[i].Cost = heldCost
	}
	return &settler{t: t, store: s, holder: h, charges: charges}
}

// run calls disturb a number of times while callers hold and settle. They get answers between two calls.
func (h *settler) run(faults int, disturb func(i int)) {
	h.t.Helper()
	h.repeated.Store(0)
	var over atomic.Bool
	var callers sync.WaitGroup
	for range holdCallers {
		callers.Go(func() {
			for !over.Load() && !h.t.Failed() {
				if err := h.holdAndSettle(); err != nil {
					h.t.Error(err)
					return
				}
				h.answers.Add(1)
			}
		})
	}
	for i := range faults {
		before := h.answers.Load()
		Eventually(h.t, "callers get answers between two faults", func() error {
			if got := h.answers.Load() - before; got < holdCallers && !h.t.Failed() {
				return fmt.Errorf("%d answers", got)
			}
			return nil
		})
		disturb(i)
	}
	over.Store(true)
	callers.Wait()
	if h.repeated.Load() == 0 {
		h.t.Error("no call was repeated: the run means nothing")
	}
}

// holdAndSettle makes a hold, settles three of four holds, and releases the slot.
func (h *settler) holdAndSettle() (err error) {
	charges := slices.Clone(h.charges)
	if h.slot != nil {
		slot := *h.slot
		rand.Read(slot.Slot[:]) // never fails
		charges = append(charges, slot)
		defer func() {
			release := []store.Refund{{Charge: slot}}
			if failed := h.untilAnswered(func() error { return h.store.Refund(h.t.Context(), release, "") }); err == nil {
				err = failed
			}
		}()
	}
	want := store.Hold{ID: rand.Text(), TTL: 6 * 24 * time.Hour, Terms: make([]store.Terms, len(charges))}
	var id string
	err = h.untilAnswered(func() (err error) {
		_, id, err = h.holder.Hold(h.t.Context(), nil, charges, mete.Mode{}, want)
		return err
	})
	if err != nil || id == "" {
		return fmt.Errorf("hold: id %q, error %w", id, err)
	}
	h.mu.Lock()
	h.charged += heldCost
	h.holds++
	settles := h.holds%4 > 0
	if !settles {
		h.open = append(h.open, id)
	}
	h.mu.Unlock()
	if settles {
		err = h.settle(id, bucket.Tokens(mathrand.IntN(16))*bucket.Token)
	}
	return err
}

func (h *settler) settle(id string, actual bucket.Tokens) error {
	var status store.HoldStatus
	err := h.untilAnswered(func() (err error) {
		status, err = h.holder.Settle(h.t.Context(), id, actual)
		return err
	})
	if err != nil || status.State != store.HoldSettled || status.Actual != actual {
		return fmt.Errorf("settle with %v: %+v, error %w", actual, status, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.charged += actual - heldCost
	return nil
}

// settleOpen settles all open holds, alternately with a lower and a higher cost. disturb loses an answer to every third call. settleOpen
// returns the sum of the excesses.
func (h *settler) settleOpen(disturb func()) (excess bucket.Tokens) {
	h.t.Helper()
	h.repeated.Store(0)
	for i, id := range h.open {
		if i%3 == 0 {
			disturb()
		}
		actual := heldCost + bucket.Token
		if i%2 == 0 {
			actual = heldCost - 5*bucket.Token
		} else {
			excess += bucket.Token
		}
		if err := h.settle(id, actual); err != nil {
			h.t.Fatal(err)
		}
	}
	if h.open = nil; h.repeated.Load() == 0 {
		h.t.Error("no settlement was repeated: the run means nothing")
	}
	return excess
}

// take takes a cost from all buckets.
func (h *settler) take(cost bucket.Tokens) bucket.Tokens {
	h.t.Helper()
	charges := slices.Clone(h.charges)
	for i := range charges {
		charges[i].Cost = cost
	}
	allowed, id := false, rand.Text()
	if err := h.untilAnswered(func() (err error) {
		_, allowed, err = h.store.Take(h.t.Context(), nil, charges, mete.Mode{ID: id})
		return err
	}); err != nil || !allowed {
		h.t.Fatalf("take: allowed %t, error %v", allowed, err)
	}
	h.charged += cost
	return cost
}

// wantMissing compares the missing amounts of the buckets. All slots must be free.
func (h *settler) wantMissing(want ...bucket.Tokens) {
	h.t.Helper()
	look := slices.Clone(h.charges)
	if h.slot != nil {
		look, want = append(look, *h.slot), append(want, 0)
	}
	for i := range look {
		look[i].Cost = 0
	}
	var snaps []bucket.Snapshot
	if err := h.untilAnswered(func() (err error) {
		snaps, _, err = h.store.Take(h.t.Context(), nil, look, mete.Mode{DryRun: true})
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
	for i, snap := range snaps {
		if got := snap.Missing(); got != want[i] {
			h.t.Errorf("bucket %s misses %v tokens, want %v", look[i].Key, got, want[i])
		}
	}
}

// untilAnswered repeats a call until it succeeds, and counts the failed attempts. Its error is the last one of a call that never
// succeeds.
func (h *settler) untilAnswered(call func() error) error {
	ctx, cancel := context.WithTimeout(h.t.Context(), Patience)
	defer cancel()
	return proctest.Poll(ctx, func(context.Context) error {
		err := call()
		if err != nil {
			h.repeated.Add(1)
		}
		return err
	})
}
