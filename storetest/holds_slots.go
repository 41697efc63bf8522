// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// checkHoldWithSlot: a hold takes a slot and tokens together, or neither.
func checkHoldWithSlot(t *testing.T, open Open) {
	s, slots, tokens := newSubject(t, open), slotLimit(t, 2, time.Hour), limit(t, 10*bucket.Token, "1/1000h")
	both := func(number int, cost bucket.Tokens) []store.Charge {
		return []store.Charge{charge("a", tokens, cost), slotOf("b", slots, number)}
	}
	for i := range 2 {
		snaps, id := s.hold(minuteHold(i), mete.Mode{}, both(i, 2*bucket.Token)...)
		if id == "" || snaps[1].Remaining() != bucket.Tokens(1-i)*bucket.Token || snaps[1].NextAfter() != time.Hour {
			t.Fatalf("hold %d: id %q %s", i, id, show(snaps))
		}
	}
	snaps, id := s.hold(minuteHold(2), mete.Mode{}, both(2, 2*bucket.Token)...)
	if id != "" || !snaps[0].Allowed || snaps[1].RetryAfter != time.Hour {
		t.Errorf("no slot is free: id %q %s", id, show(snaps))
	}
	s.assertRemaining("a", tokens, 6*bucket.Token)
	s.assertState(s.settle(holdID(2), 0), store.HoldUnknown, false)
	s.release(slotOf("b", slots, 0))
	if snaps, id = s.hold(minuteHold(2), mete.Mode{}, both(2, 7*bucket.Token)...); id != "" || snaps[0].Allowed || !snaps[1].Allowed {
		t.Errorf("7 of 6 tokens: id %q %s", id, show(snaps))
	}
	s.assertHeld("b", slots, 1)
	if _, id = s.hold(minuteHold(2), mete.Mode{}, both(2, 6*bucket.Token)...); id == "" {
		t.Error("the rest was denied")
	}
	s.assertRemaining("a", tokens, 0)
	s.assertHeld("b", slots, 2)
}

// checkSlotBesideHold: a hold and its slot end independently.
func checkSlotBesideHold(t *testing.T, open Open) {
	s, slots, tokens := newSubject(t, open), slotLimit(t, 4, 10*time.Second), limit(t, 40*bucket.Token, "1/1000h")
	hold := func(number int, h store.Hold) string {
		h.ID = holdID(number)
		_, id := s.hold(h, mete.Mode{}, charge("a", tokens, 10*bucket.Token), slotOf("b", slots, number))
		return id
	}
	settled := hold(1, minuteHold(1))
	released := hold(2, minuteHold(2))
	hold(3, store.Hold{TTL: time.Second, Refund: true})
	s.assertState(s.settle(settled, 3*bucket.Token), store.HoldSettled, true)
	s.assertHeld("b", slots, 3)
	s.release(slotOf("b", slots, 2))
	s.assertRemaining("a", tokens, 17*bucket.Token)
	s.clock.Advance(1_000_000)
	s.assertRemaining("a", tokens, 27*bucket.Token)
	s.assertHeld("b", slots, 2)
	if status, err := s.holder().Renew(t.Context(), released, time.Minute); err != nil || status.State != store.HoldOpen {
		t.Errorf("renew a hold without its slot: %+v, error %v", status, err)
	}
	s.clock.Advance(8_999_999)
	s.assertHeld("b", slots, 2)
	if _, renewed := s.take(mete.Mode{Renew: true}, slotOf("b", slots, 1)); !renewed {
		t.Error("the slot of a settled hold was not renewed")
	}
	s.clock.Advance(1)
	s.assertHeld("b", slots, 1)
	s.assertState(s.settle(released, 0), store.HoldSettled, true)
	s.assertHeld("b", slots, 1)
}

// checkRepeatedHoldWithSlot: a repeated hold never charges twice. It takes an ended slot again, or is denied.
func checkRepeatedHoldWithSlot(t *testing.T, open Open) {
	s, slots, tokens := newSubject(t, open), slotLimit(t, 1, 10*time.Second), limit(t, 10*bucket.Token, "1/1000h")
	both := []store.Charge{charge("{k}a", tokens, 4*bucket.Token), slotOf("{k}b", slots, 1)}
	first, id := s.hold(minuteHold(1), mete.Mode{}, both...)
	repeat := func(want string) []bucket.Snapshot {
		t.Helper()
		again, same := s.hold(minuteHold(1), mete.Mode{}, both...)
		if same != want {
			t.Errorf("the repeated hold has the ID %q, want %q: %s", same, want, show(again))
		}
		s.assertRemaining("{k}a", tokens, 6*bucket.Token)
		s.assertHeld("{k}b", slots, 1)
		return again
	}
	s.clock.Advance(1_000_000)
	if again := repeat(id); !slices.Equal(again, first) {
		t.Errorf("the repeated answer is %s, want %s", show(again), show(first))
	}
	s.clock.Advance(9_000_000)
	s.assertHeld("{k}b", slots, 0)
	repeat(id)
	s.release(both[1])
	s.take(mete.Mode{}, slotOf("{k}b", slots, 2))
	if again := repeat(""); !again[0].Allowed || again[1].RetryAfter != 10*time.Second {
		t.Errorf("another request holds the slot: %s", show(again))
	}
	s.release(slotOf("{k}b", slots, 2))
	repeat(id)
	for _, others := range [][]store.Charge{both[:1], both[1:], {both[0], slotOf("{k}c", slots, 1)}} {
		h := minuteHold(1)
		h.Terms = make([]store.Terms, len(others))
		if _, _, err := s.holder().Hold(t.Context(), nil, others, mete.Mode{}, h); !errors.Is(err, store.ErrHoldKeys) {
			t.Errorf("%v: error %v; want other keys refused", others, err)
		}
	}
	s.assertHeld("{k}c", slots, 0)
	s.assertState(s.settle(id, 0), store.HoldSettled, true)
	s.assertRemaining("{k}a", tokens, 10*bucket.Token)
	s.assertHeld("{k}b", slots, 1)
}

// checkHoldOfSlots: a hold may consist of slots alone. It has nothing to settle.
func checkHoldOfSlots(t *testing.T, open Open) {
	s, slots := newSubject(t, open), slotLimit(t, 1, time.Hour)
	both := []store.Charge{slotOf("a", slots, 1), slotOf("b", slots, 1)}
	_, id := s.hold(minuteHold(1), mete.Mode{}, both...)
	if _, same := s.hold(minuteHold(1), mete.Mode{}, both...); same != id || id == "" {
		t.Errorf("the repeated hold has the ID %q, want %q", same, id)
	}
	if status, err := s.holder().Renew(t.Context(), id, time.Hour); err != nil || status.State != store.HoldOpen || status.Expires != s.clock.Now().Add(time.Hour) {
		t.Errorf("renew: %+v, error %v", status, err)
	}
	s.take(mete.Mode{}, slotOf("c", slots, 9))
	if _, denied := s.hold(minuteHold(2), mete.Mode{}, slotOf("c", slots, 2), slotOf("d", slots, 2)); denied != "" {
		t.Errorf("no slot is free: id %q", denied)
	}
	s.assertHeld("d", slots, 0)
	s.assertState(s.settle(id, 5*bucket.Token), store.HoldSettled, true)
	s.assertState(s.settle(id, 0), store.HoldSettled, false)
	s.assertHeld("a", slots, 1)
	s.assertHeld("b", slots, 1)
}

// checkHoldSlotBound holds, settles and releases in many goroutines. There are never more holders than slots, and in the end
// the bucket lacks exactly the settled amounts.
func checkHoldSlotBound(t *testing.T, open Open) {
	const most = 3
	s, slots, tokens := newSubject(t, open), slotLimit(t, most, time.Hour), limit(t, 100*bucket.Token, "1/1000h")
	var number, holders, kept, admitted atomic.Int64
	race(func(r *rand.Rand) {
		for range laps / 8 {
			id := int(number.Add(1))
			cost := bucket.Tokens(1 + r.Int64N(3000))
			charges := []store.Charge{{Key: "a", Limit: tokens, Cost: cost}, slotOf("b", slots, id)}
			h := minuteHold(id)
			h.Terms = make([]store.Terms, len(charges))
			_, hold, err := s.holder().Hold(t.Context(), nil, charges, mete.Mode{}, h)
			if err != nil {
				t.Error(err)
				return
			}
			if hold == "" {
				continue
			}
			admitted.Add(1)
			if n := holders.Add(1); n > most {
				t.Errorf("%d requests hold %d slots", n, most)
			}
			actual := bucket.Tokens(r.Int64N(int64(cost) + 1))
			kept.Add(int64(actual))
			if status, err := s.holder().Settle(t.Context(), hold, actual); err != nil || !status.Settled {
				t.Errorf("settle %q: %+v, error %v", hold, status, err)
			}
			holders.Add(-1)
			if err := s.store.Refund(t.Context(), Refunds(charges[1:]...), ""); err != nil {
				t.Error(err)
			}
		}
	})
	s.assertHeld("b", slots, 0)
	s.assertRemaining("a", tokens, max(tokens.Capacity()-bucket.Tokens(kept.Load()), 0))
	if admitted.Load() == 0 {
		t.Error("no hold was admitted: the run means nothing")
	}
}
