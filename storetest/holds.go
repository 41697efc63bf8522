// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// RunHolds tests the holds of the stores that open returns. The stores implement [store.Holder].
func RunHolds(t *testing.T, open Open) {
	for _, r := range holdRules {
		t.Run(r.name, func(t *testing.T) { r.check(t, open) })
	}
}

// RunHoldsBriefly is [RunHolds] without the bound of a bucket, which takes 10,000 calls, for a second way to access a
// store.
func RunHoldsBriefly(t *testing.T, open Open) {
	for _, r := range holdRules[:len(holdRules)-1] {
		t.Run(r.name, func(t *testing.T) { r.check(t, open) })
	}
}

// RunHoldsInParts tests holds of stores that take several buckets one after another: see [RunInParts].
func RunHoldsInParts(t *testing.T, open Open) {
	for _, r := range holdRules {
		if r.oneStep {
			r.name, r.check = r.name+", one by one", r.singly
		}
		t.Run(r.name, func(t *testing.T) { r.check(t, open) })
	}
}

var holdRules = []rule{
	{name: "a settled hold keeps the actual cost", check: checkSettle},
	{name: "a settlement may exceed the hold", check: checkSettleExcess},
	{name: "a repeated hold is charged once", check: checkRepeatedHold},
	{name: "a denied hold leaves nothing", check: checkDeniedHold},
	{name: "an expired hold keeps its charge", check: checkExpiredHold},
	{name: "an expired hold is refunded at its expiry", check: checkRefundedHold},
	{name: "a renewed hold expires later", check: checkRenewedHold},
	{name: "a settlement knows the refill since the take", check: checkSettleRefill},
	{name: "a reset returns the tokens of a hold once", check: checkResetHolds},
	{name: "a bucket that was reset equals a new one", check: checkResetTwins},
	{name: "a settlement does not shorten earlier holds", check: checkEarlierHold},
	{name: "a hold has terms", check: checkTerms},
	{name: "a settlement has an amount for each unit", check: checkUnits},
	{name: "invalid holds are refused", check: checkInvalidHolds},
	{name: "holds agree with the model", check: checkHoldModel, oneStep: true, singly: checkHoldModelSingly},
	{name: "holds agree with the model while the clock steps back", check: checkHoldModelBack, oneStep: true, singly: checkHoldModelBackSingly},
	{name: "holds of calendars agree with the model", check: checkCalendarHolds, oneStep: true, singly: checkCalendarHoldsSingly},
	{name: "a settlement after midnight returns nothing", check: checkMidnight},
	{name: "holds, penalties, calendars and slots share takes", check: checkSlotsBesideOthers},
	{name: "a hold takes slots in the same step", check: checkHoldWithSlot},
	{name: "a hold and its slot end independently", check: checkSlotBesideHold},
	{name: "a repeated hold takes an ended slot again", check: checkRepeatedHoldWithSlot},
	{name: "a hold may consist of slots", check: checkHoldOfSlots},
	{name: "holds with slots keep both bounds under concurrency", check: checkHoldSlotBound},
	{name: "holds conserve tokens under concurrency", check: checkHoldConservation},
	{name: "one of several settlements counts", check: checkConcurrentSettlements},
	{name: "a bucket has a bound of holds", check: checkHoldBound},
}

func (s *subject) holder() store.Holder {
	s.Helper()
	h, ok := store.As[store.Holder](s.store)
	if !ok {
		s.Fatal("the store has no holds")
	}
	return h
}

// hold makes a hold and returns its ID, which is empty for a denial.
func (s *subject) hold(h store.Hold, mode mete.Mode, charges ...store.Charge) ([]bucket.Snapshot, string) {
	s.Helper()
	if h.Terms == nil {
		h.Terms = make([]store.Terms, len(charges))
	}
	snaps, id, err := s.holder().Hold(s.Context(), nil, slices.Clone(charges), mode, h)
	if err != nil {
		s.Fatalf("hold %v: %v", charges, err)
	}
	return snaps, id
}

func (s *subject) settle(id string, actual ...bucket.Tokens) store.HoldStatus {
	s.Helper()
	status, err := s.holder().Settle(s.Context(), id, actual...)
	if err != nil {
		s.Fatalf("settle %q: %v", id, err)
	}
	return status
}

func (s *subject) assertState(got store.HoldStatus, want store.HoldState, settled bool) {
	s.Helper()
	if got.State != want || got.Settled != settled {
		s.Errorf("%+v, want %v, settled by this call %v", got, want, settled)
	}
}

const unknownHold = "0123456789abcdefghij"

func holdID(i int) string { return fmt.Sprintf("hold%016d", i) }

func minuteHold(i int) store.Hold { return store.Hold{ID: holdID(i), TTL: time.Minute} }

func checkSettle(t *testing.T, open Open) {
	for name, l := range limitKinds(t) {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, open)
			_, id := s.hold(minuteHold(1), mete.Mode{}, charge(name, l, 6*bucket.Token))
			s.assertRemaining(name, l, 4*bucket.Token)
			s.assertState(s.settle(id, 2*bucket.Token), store.HoldSettled, true)
			s.assertRemaining(name, l, 8*bucket.Token)
			for range 2 {
				if got := s.settle(id, 5*bucket.Token); got.Actual != 2*bucket.Token {
					t.Errorf("settled with %v, want 2 from the first settlement", got.Actual)
				} else {
					s.assertState(got, store.HoldSettled, false)
				}
			}
			s.assertRemaining(name, l, 8*bucket.Token)
			s.assertState(s.settle(unknownHold, 0), store.HoldUnknown, false)
		})
	}
}

func checkSettleExcess(t *testing.T, open Open) {
	none := bucket.Tokens(0)
	solvent, _, err := bucket.Spec{Capacity: 10 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Hour}, MaxReserved: &none}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	s, l := newSubject(t, open), limit(t, 10*bucket.Token, "1/1h")
	_, id := s.hold(minuteHold(1), mete.Mode{}, charge("{x}a", l, 4*bucket.Token), charge("{x}b", solvent, 4*bucket.Token))
	s.assertState(s.settle(id, 11*bucket.Token), store.HoldOpen, false)
	s.assertRemaining("{x}a", l, 6*bucket.Token)
	s.assertRemaining("{x}b", solvent, 6*bucket.Token)
	s.assertState(s.settle(id, 9*bucket.Token), store.HoldSettled, true)
	s.assertRemaining("{x}a", l, bucket.Token)
	s.assertRemaining("{x}b", solvent, bucket.Token)
	_, id = s.hold(minuteHold(2), mete.Mode{}, charge("c", l, 4*bucket.Token))
	s.assertState(s.settle(id, 13*bucket.Token), store.HoldSettled, true)
	if snaps, _ := s.take(mete.Mode{DryRun: true}, charge("c", l, 0)); snaps[0].Debt() != 3*bucket.Token {
		t.Errorf("the debt is %v, want 3", snaps[0].Debt())
	}
}

func checkRepeatedHold(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 10*bucket.Token, "1/1h")
	charges := []store.Charge{charge("a", l, 3*bucket.Token), charge("b", l, 2*bucket.Token)}
	snaps, id := s.hold(minuteHold(1), mete.Mode{}, charges...)
	s.clock.Advance(1)
	again, sameID := s.hold(minuteHold(1), mete.Mode{}, charges...)
	if sameID != id || len(again) != 2 || again[0].Remaining() != snaps[0].Remaining() || again[1].Remaining() != snaps[1].Remaining() {
		t.Errorf("%q %s, want %q %s", sameID, show(again), id, show(snaps))
	}
	s.assertRemaining("a", l, 7*bucket.Token)
	s.settle(id, 0)
	if _, sameID = s.hold(minuteHold(1), mete.Mode{}, charges...); sameID != id {
		t.Errorf("%q, want %q after the settlement", sameID, id)
	}
	s.assertRemaining("a", l, 10*bucket.Token)
	s.assertRemaining("b", l, 10*bucket.Token)
}

func checkDeniedHold(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 10*bucket.Token, "1/1h")
	_, id := s.hold(minuteHold(1), mete.Mode{}, charge("a", l, 3*bucket.Token), charge("b", l, 11*bucket.Token))
	if id != "" {
		t.Errorf("a hold above the capacity has the ID %q", id)
	}
	s.assertRemaining("a", l, 10*bucket.Token)
	s.assertState(s.settle(holdID(1), 0), store.HoldUnknown, false)
	if _, id = s.hold(minuteHold(1), mete.Mode{}, charge("a", l, 3*bucket.Token), charge("b", l, bucket.Token)); id == "" {
		t.Error("the ID of a denied hold was not decided again")
	}
}

func checkExpiredHold(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 10*bucket.Token, "1/1h")
	_, id := s.hold(minuteHold(1), mete.Mode{}, charge("a", l, 6*bucket.Token))
	s.clock.Advance(time.Minute.Microseconds())
	s.assertState(s.settle(id, 0), store.HoldExpired, false)
	s.assertRemaining("a", l, 4*bucket.Token+bucket.Token/60)
	s.clock.Advance(2 * store.RetryHorizon.Microseconds())
	s.assertState(s.settle(id, 0), store.HoldUnknown, false)
}

func checkRefundedHold(t *testing.T, open Open) {
	for name, l := range limitKinds(t) {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, open)
			_, id := s.hold(store.Hold{ID: holdID(1), TTL: time.Second, Refund: true}, mete.Mode{}, charge(name, l, 6*bucket.Token))
			s.take(mete.Mode{}, charge(name, l, 4*bucket.Token))
			s.clock.Advance(999_999)
			before, _ := s.take(mete.Mode{DryRun: true}, charge(name, l, 0))
			s.clock.Advance(1)
			after, _ := s.take(mete.Mode{DryRun: true}, charge(name, l, 0))
			if got := after[0].Remaining() - before[0].Remaining(); got < 5*bucket.Token {
				t.Errorf("%v came back at the expiry, want at least 5 of 6", got)
			}
			s.assertState(s.settle(id, 0), store.HoldExpired, false)
			if again, _ := s.take(mete.Mode{DryRun: true}, charge(name, l, 0)); again[0].Remaining() != after[0].Remaining() {
				t.Errorf("%v remain after another look, want %v", again[0].Remaining(), after[0].Remaining())
			}
		})
	}
}

func checkRenewedHold(t *testing.T, open Open) {
	for _, refund := range []bool{false, true} {
		t.Run(fmt.Sprintf("refund %v", refund), func(t *testing.T) {
			s, l := newSubject(t, open), limit(t, 10*bucket.Token, "1/1000h")
			_, id := s.hold(store.Hold{ID: holdID(1), TTL: time.Second, Refund: refund}, mete.Mode{}, charge("a", l, 6*bucket.Token))
			s.clock.Advance(900_000)
			status, err := s.holder().Renew(t.Context(), id, time.Second)
			if err != nil || status.State != store.HoldOpen || status.Expires != s.clock.Now().Add(time.Second) {
				t.Errorf("%+v, error %v; want open for one more second", status, err)
			}
			s.clock.Advance(999_999)
			s.assertRemaining("a", l, 4*bucket.Token)
			s.assertState(s.settle(id, bucket.Token), store.HoldSettled, true)
			s.assertRemaining("a", l, 9*bucket.Token)
			s.clock.Advance(1_000_000)
			s.assertRemaining("a", l, 9*bucket.Token)
			if status, err = s.holder().Renew(t.Context(), id, time.Second); err != nil || status.State != store.HoldSettled {
				t.Errorf("%+v, error %v; want settled", status, err)
			}
		})
	}
}

// checkSettleRefill: all tokens of a hold have refilled, but the bucket was never full.
func checkSettleRefill(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 10*bucket.Token, "1/1s")
	s.take(mete.Mode{}, charge("a", l, 4*bucket.Token))
	_, id := s.hold(minuteHold(1), mete.Mode{}, charge("a", l, 5*bucket.Token))
	for range 20 {
		s.clock.Advance(1_000_000)
		s.take(mete.Mode{}, charge("a", l, bucket.Token))
	}
	s.assertRemaining("a", l, bucket.Token)
	s.assertState(s.settle(id, 2*bucket.Token), store.HoldSettled, true)
	s.assertRemaining("a", l, 4*bucket.Token)
}

// checkEarlierHold settles two of three holds of a later epoch, and then the hold of an earlier epoch. Nothing refills, so each
// settlement returns everything.
func checkEarlierHold(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 10*bucket.Token, "1/1000h")
	_, earlier := s.hold(minuteHold(1), mete.Mode{}, charge("a", l, bucket.Token))
	s.clock.Advance(10_000_000)
	s.hold(minuteHold(2), mete.Mode{}, charge("a", l, bucket.Token))
	_, third := s.hold(minuteHold(3), mete.Mode{}, charge("a", l, bucket.Token))
	_, fourth := s.hold(minuteHold(4), mete.Mode{}, charge("a", l, bucket.Token))
	for i, id := range []string{third, fourth, earlier} {
		s.assertState(s.settle(id, 0), store.HoldSettled, true)
		s.assertRemaining("a", l, bucket.Tokens(7+i)*bucket.Token)
	}
}

func checkTerms(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 100*bucket.Token, "1/1000h")
	charges := []store.Charge{charge("fixed", l, 10*bucket.Token), charge("kept", l, 10*bucket.Token), charge("scaled", l, 30*bucket.Token)}
	h := minuteHold(1)
	h.Terms = []store.Terms{{Fixed: 3 * bucket.Token}, {Kept: true}, {Asked: 20 * bucket.Token}}
	_, id := s.hold(h, mete.Mode{}, charges...)
	s.assertState(s.settle(id, 4*bucket.Token+1), store.HoldSettled, true)
	s.assertRemaining("fixed", l, 93*bucket.Token-1)
	s.assertRemaining("kept", l, 90*bucket.Token)
	s.assertRemaining("scaled", l, 94*bucket.Token-2) // 1.5 is rounded up
}

func checkInvalidHolds(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 10*bucket.Token, "1/1h")
	for _, h := range []store.Hold{
		{ID: "short", TTL: time.Second}, {ID: "with spaces and more", TTL: time.Second}, {ID: holdID(1)}, {ID: holdID(1), TTL: store.MaxHoldTTL + 1},
		{ID: holdID(1), TTL: time.Second, Terms: []store.Terms{{Unit: store.MaxCharges}}},
	} {
		if h.Terms == nil {
			h.Terms = make([]store.Terms, 1)
		}
		_, id, err := s.holder().Hold(t.Context(), nil, []store.Charge{charge("a", l, bucket.Token)}, mete.Mode{}, h)
		if !errors.Is(err, store.ErrHold) || id != "" || store.Spent(err) != store.NotSpent {
			t.Errorf("%+v: id %q, error %v; want it refused", h, id, err)
		}
	}
	if _, err := s.holder().Renew(t.Context(), holdID(1), 0); !errors.Is(err, store.ErrHold) {
		t.Errorf("renew for 0: %v", err)
	}
	for _, actual := range [][]bucket.Tokens{nil, {-2}, {0, bucket.MaxTokens + 1}, make([]bucket.Tokens, store.MaxCharges+1)} {
		if _, err := s.holder().Settle(t.Context(), holdID(1), actual...); !errors.Is(err, store.ErrHold) || store.Spent(err) != store.NotSpent {
			t.Errorf("settle with %v: error %v; want it refused", actual, err)
		}
	}
	s.assertRemaining("a", l, 10*bucket.Token)
}

// checkHoldConservation holds and settles in many goroutines. In the end the bucket lacks exactly the settled amounts.
func checkHoldConservation(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 300*bucket.Token, "1/1000h")
	var kept [2]atomic.Int64
	var number atomic.Int64
	race(func(r *rand.Rand) {
		for range laps / 4 {
			charges := []store.Charge{{Key: "a", Limit: l, Cost: bucket.Tokens(1 + r.Int64N(3000))}, {Key: "b", Limit: l, Cost: bucket.Tokens(1 + r.Int64N(3000))}}
			h := minuteHold(int(number.Add(1)))
			h.Terms = make([]store.Terms, len(charges))
			_, id, err := s.holder().Hold(t.Context(), nil, charges, mete.Mode{}, h)
			if err != nil {
				t.Error(err)
				return
			}
			if id == "" {
				continue
			}
			for i, c := range charges {
				kept[i].Add(int64(c.Cost))
			}
			if r.IntN(3) == 0 {
				continue // never settled
			}
			actual := bucket.Tokens(r.Int64N(int64(min(charges[0].Cost, charges[1].Cost)) + 1)) // a debt would keep refunds
			status, err := s.holder().Settle(t.Context(), id, actual)
			if err != nil || !status.Settled {
				t.Errorf("settle %q: %+v, error %v", id, status, err)
				return
			}
			for i, c := range charges {
				kept[i].Add(int64(actual - c.Cost))
			}
		}
	})
	for i, key := range []string{"a", "b"} {
		s.assertRemaining(key, l, max(l.Capacity()-bucket.Tokens(kept[i].Load()), 0))
	}
}

func checkConcurrentSettlements(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 100*bucket.Token, "1/1000h")
	for i := range 20 {
		_, id := s.hold(minuteHold(i), mete.Mode{}, charge("a", l, 10*bucket.Token), charge("b", l, 10*bucket.Token))
		var first atomic.Int64
		var all sync.WaitGroup
		for j := range 4 {
			all.Go(func() {
				status, err := s.holder().Settle(t.Context(), id, bucket.Tokens(j)*bucket.Token)
				if err != nil || status.State != store.HoldSettled {
					t.Errorf("settle: %+v, error %v", status, err)
				}
				if status.Settled {
					first.Add(1)
				}
			})
		}
		all.Wait()
		actual := s.settle(id, 0).Actual
		if first.Load() != 1 {
			t.Errorf("%d settlements count, want 1", first.Load())
		}
		s.assertRemaining("a", l, 100*bucket.Token-actual)
		s.assertRemaining("b", l, 100*bucket.Token-actual)
		if err := s.store.Reset(t.Context(), []string{"a", "b"}); err != nil {
			t.Fatal(err)
		}
	}
}
