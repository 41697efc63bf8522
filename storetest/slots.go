// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
)

func slotLimit(t testing.TB, most int, lease time.Duration) bucket.Limit {
	t.Helper()
	l, _, err := bucket.Spec{Algorithm: bucket.AlgorithmConcurrency, Rate: bucket.Rate{Tokens: bucket.Tokens(most) * bucket.Token, Per: lease}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func slotOf(key string, l bucket.Limit, number int) store.Charge {
	id := bucket.SlotID{0: 1, 14: byte(number >> 8), 15: byte(number)}
	return store.Charge{Key: key, Limit: l, Cost: bucket.Token, Slot: id}
}

func (s *subject) release(charges ...store.Charge) {
	s.Helper()
	if err := s.store.Refund(s.Context(), Refunds(charges...), ""); err != nil {
		s.Fatal(err)
	}
}

// assertHeld checks the number of held slots by a dry run.
func (s *subject) assertHeld(key string, l bucket.Limit, want int) {
	s.Helper()
	snaps, _ := s.take(mete.Mode{DryRun: true, Fresh: true}, slotOf(key, l, 0xffff))
	if got := int(snaps[0].Missing() / bucket.Token); got != want {
		s.Errorf("%s: %d slots are held, want %d", key, got, want)
	}
}

// checkSlots: a slot counts until it is released, or until its lease ends by the store's clock.
func checkSlots(t *testing.T, open Open) {
	s, l := newSubject(t, open), slotLimit(t, 2, 10*time.Second)
	s.take(mete.Mode{}, slotOf("k", l, 1))
	s.clock.Advance(4_000_000)
	if snaps, allowed := s.take(mete.Mode{}, slotOf("k", l, 2)); !allowed || snaps[0].Remaining() != 0 || snaps[0].FullAfter() != 10*time.Second || snaps[0].NextAfter() != 6*time.Second {
		t.Errorf("the second slot: got %v %s", allowed, show(snaps))
	}
	if snaps, allowed := s.take(mete.Mode{}, slotOf("k", l, 3)); allowed || snaps[0].RetryAfter != 6*time.Second {
		t.Errorf("a third slot of two: got %v %s", allowed, show(snaps))
	}
	if _, allowed := s.take(mete.Mode{Renew: true}, slotOf("k", l, 1)); !allowed {
		t.Error("a held slot was not renewed")
	}
	s.clock.Advance(9_999_999)
	if _, allowed := s.take(mete.Mode{}, slotOf("k", l, 3)); allowed {
		t.Error("a slot was free a microsecond before an end")
	}
	s.release(slotOf("k", l, 1))
	s.release(slotOf("k", l, 1)) // again: nothing happens
	s.assertHeld("k", l, 1)
	s.clock.Advance(1)
	s.assertHeld("k", l, 0)
	if snaps, allowed := s.take(mete.Mode{Renew: true}, slotOf("k", l, 2)); allowed || snaps[0].RetryAfter != bucket.Never {
		t.Errorf("a slot was renewed after its end: %s", show(snaps))
	}
	s.assertHeld("k", l, 0)
}

// checkSlotList: a store that lists slots shows the held ones in the order of their ends.
func checkSlotList(t *testing.T, open Open) {
	s, l := newSubject(t, open), slotLimit(t, 3, 10*time.Second)
	lister, ok := store.As[store.SlotLister](s.store)
	if !ok {
		return // lists are optional
	}
	for i := range 3 {
		s.take(mete.Mode{}, slotOf("k", l, i+1))
		s.clock.Advance(4_000_000)
	}
	list, now, err := lister.Slots(t.Context(), "k", 10)
	if err != nil || len(list) != 2 || list[0].ID != slotOf("k", l, 2).Slot || list[1].End-now != 6_000_000 {
		t.Errorf("got %v at %d, %v", list, now, err)
	}
	if list, _, err := lister.Slots(t.Context(), "k", 1); err != nil || len(list) != 1 {
		t.Errorf("one slot at most: got %v, %v", list, err)
	}
	if list, _, err := lister.Slots(t.Context(), "other", 1); err != nil || len(list) != 0 {
		t.Errorf("another key: got %v, %v", list, err)
	}
}

// checkChangedSlots: a changed most or lease applies at once to the slots that are there.
func checkChangedSlots(t *testing.T, open Open) {
	s, wide := newSubject(t, open), slotLimit(t, 4, 10*time.Second)
	for i := range 4 {
		s.take(mete.Mode{}, slotOf("k", wide, i+1))
		s.clock.Advance(1_000_000)
	}
	narrow := slotLimit(t, 2, 3*time.Second)
	if snaps, allowed := s.take(mete.Mode{}, slotOf("k", narrow, 9)); allowed || snaps[0].RetryAfter != 8*time.Second || snaps[0].Remaining() != 0 {
		t.Errorf("a lowered limit: got %v %s", allowed, show(snaps))
	}
	s.take(mete.Mode{Renew: true}, slotOf("k", narrow, 4)) // it now ends first
	s.clock.Advance(3_000_000)
	s.assertHeld("k", narrow, 3)
	if _, allowed := s.take(mete.Mode{}, slotOf("k", slotLimit(t, 4, time.Second), 9)); !allowed {
		t.Error("a raised limit denied a free slot")
	}
}

// checkSlotsWithBuckets: slots and buckets are taken together or not at all, and a retry of a take holds one slot.
func checkSlotsWithBuckets(t *testing.T, open Open) {
	s, l, tokens := newSubject(t, open), slotLimit(t, 2, time.Minute), limit(t, 3*bucket.Token, "1/1000h")
	both := func(number int) []store.Charge {
		return []store.Charge{charge("{k}a", tokens, bucket.Token), slotOf("{k}b", l, number), slotOf("{k}c", l, number)}
	}
	if _, allowed := s.take(mete.Mode{ID: "first"}, both(1)...); !allowed {
		t.Fatal("denied")
	}
	if _, allowed := s.take(mete.Mode{ID: "first"}, both(1)...); !allowed {
		t.Error("a retry was denied")
	}
	s.assertRemaining("{k}a", tokens, 2*bucket.Token)
	s.assertHeld("{k}b", l, 1)
	s.take(mete.Mode{}, slotOf("{k}c", l, 8))
	if _, allowed := s.take(mete.Mode{}, both(2)...); allowed {
		t.Error("a take without a free slot was admitted")
	}
	s.assertRemaining("{k}a", tokens, 2*bucket.Token)
	s.assertHeld("{k}b", l, 1)
	s.release(slotOf("{k}c", l, 8))
	if _, allowed := s.take(mete.Mode{}, charge("{k}a", tokens, 3*bucket.Token), slotOf("{k}b", l, 3)); allowed {
		t.Error("a take without tokens was admitted")
	}
	s.assertHeld("{k}b", l, 1)
	s.clock.Advance(60_000_000) // the retry of a take with an ended slot is a new take
	s.take(mete.Mode{ID: "first"}, both(1)...)
	s.assertRemaining("{k}a", tokens, bucket.Token)
	s.assertHeld("{k}b", l, 1)
	if err := s.store.Reset(t.Context(), []string{"{k}b"}); err != nil {
		t.Fatal(err)
	}
	s.assertHeld("{k}b", l, 0)
}

// checkResetSlots: a reset frees all slots. Requests from before cannot renew their slots, and their releases free no others.
func checkResetSlots(t *testing.T, open Open) {
	resetSlots(t, open, func(s *subject, key string) {
		if err := s.store.Reset(t.Context(), []string{key}); err != nil {
			t.Fatal(err)
		}
	})
}

// checkClearSlots is checkResetSlots for a whole family.
func checkClearSlots(t *testing.T, open Open) {
	resetSlots(t, open, func(s *subject, key string) {
		if removed, _ := clearFamilies(t, s.store, store.Family(key)); removed != 1 {
			t.Errorf("%d keys were removed, want 1", removed)
		}
	})
}

func resetSlots(t *testing.T, open Open, reset func(s *subject, key string)) {
	const key, other = "free:x=1", "other:x=1"
	s, l := newSubject(t, open), slotLimit(t, 2, time.Minute)
	s.take(mete.Mode{}, slotOf(key, l, 1))
	s.take(mete.Mode{}, slotOf(key, l, 2))
	s.take(mete.Mode{}, slotOf(other, l, 1))
	reset(s, key)
	s.assertHeld(key, l, 0)
	s.assertHeld(other, l, 1)
	for i := range 2 {
		if _, allowed := s.take(mete.Mode{}, slotOf(key, l, 3+i)); !allowed {
			t.Error("a slot is not free after the reset")
		}
	}
	if snaps, allowed := s.take(mete.Mode{Renew: true}, slotOf(key, l, 1)); allowed || snaps[0].RetryAfter != bucket.Never {
		t.Errorf("a slot was renewed after the reset: %s", show(snaps))
	}
	s.release(slotOf(key, l, 1))
	s.release(slotOf(key, l, 2))
	s.assertHeld(key, l, 2)
}

// checkSlotBound races holders for the slots of several keys. There are never more holders than slots, and none remains.
func checkSlotBound(t *testing.T, open Open) {
	s, l := newSubject(t, open), slotLimit(t, 3, time.Hour)
	keys := []string{"{k}a", "{k}b", "{k}c"}
	held, admitted := make([]atomic.Int64, len(keys)), atomic.Int64{}
	var number atomic.Int64
	race(func(r *rand.Rand) {
		for range laps / 4 {
			var charges []store.Charge
			var chosen []int
			id := int(number.Add(1))
			for i, k := range keys {
				if r.IntN(2) == 0 {
					charges, chosen = append(charges, slotOf(k, l, id)), append(chosen, i)
				}
			}
			if len(charges) == 0 {
				continue
			}
			_, allowed, err := s.store.Take(t.Context(), nil, charges, mete.Mode{})
			if err != nil {
				t.Error(err)
				return
			}
			if !allowed {
				continue
			}
			admitted.Add(1)
			for _, i := range chosen {
				if n := held[i].Add(1); n > 3 {
					t.Errorf("%s: %d requests hold 3 slots", keys[i], n)
				}
			}
			if _, renewed, err := s.store.Take(t.Context(), nil, charges, mete.Mode{Renew: true}); err != nil || !renewed {
				t.Errorf("a held slot was not renewed: %v", err)
			}
			for _, i := range chosen {
				held[i].Add(-1)
			}
			if err := s.store.Refund(t.Context(), Refunds(charges...), ""); err != nil {
				t.Error(err)
			}
		}
	})
	for _, k := range keys {
		s.assertHeld(k, l, 0)
	}
	if admitted.Load() == 0 {
		t.Error("no take was admitted: the run means nothing")
	}
}

// checkSlotModel runs random histories of slots and buckets against the store and against [Model].
func checkSlotModel(t *testing.T, open Open) { compareSlots(t, open, 3, seedsOf(8)) }

func checkSlotModelBriefly(t *testing.T, open Open) { compareSlots(t, open, 3, 2) }

// checkSlotModelSingly takes one slot and no bucket at a time.
func checkSlotModelSingly(t *testing.T, open Open) { compareSlots(t, open, 1, seedsOf(8)) }

func compareSlots(t *testing.T, open Open, keys int, seeds uint64) {
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			s := newSubject(t, open)
			model := NewModel(s.clock.Now)
			r := rand.New(testseed.PCG(seed, 11))
			limits := []bucket.Limit{slotLimit(t, 1+r.IntN(4), time.Second), slotLimit(t, 1+r.IntN(4), time.Duration(1+r.Int64N(9e6))*time.Microsecond)}
			tokens := limit(t, 20*bucket.Token, "5/1s")
			for step := range 300 {
				s.clock.Set(randomInstant(r, s.clock.Now()))
				if !sameSlotStep(s, model, r, limits, tokens, keys) {
					t.Fatalf("the store differs from the model in step %d of seed %d", step, seed)
				}
			}
		})
	}
}

func sameSlotStep(s *subject, model *Model, r *rand.Rand, limits []bucket.Limit, tokens bucket.Limit, keys int) bool {
	s.Helper()
	var charges []store.Charge
	number := 1 + r.IntN(6)
	for i := range keys {
		if i == 0 || r.IntN(3) == 0 {
			charges = append(charges, slotOf(fmt.Sprint("{k}slots", i), limits[r.IntN(2)], number))
		}
	}
	mode := mete.Mode{DryRun: r.IntN(6) == 0}
	switch r.IntN(8) {
	case 0, 1:
		_ = s.store.Refund(s.Context(), Refunds(charges...), "")
		_ = model.Refund(s.Context(), Refunds(charges...), "")
		return true
	case 2:
		mode.Renew = true
	case 3, 4, 5:
		if keys == 1 {
			break
		}
		charges = append(charges, charge("{k}tokens", tokens, bucket.Tokens(r.Int64N(8000))))
		mode.UpTo = r.IntN(4) == 0
	}
	if !mode.Renew && r.IntN(3) == 0 {
		mode.ID = fmt.Sprint("request", number)
	}
	got, allowed := s.take(mode, charges...)
	want, wantAllowed, _ := model.Take(s.Context(), nil, charges, mode)
	if allowed != wantAllowed || !slices.Equal(got, want) {
		s.Errorf("at %d, %+v %+v:\n got %v %s\nwant %v %s", s.clock.Now(), mode, charges, allowed, show(got), wantAllowed, show(want))
		return false
	}
	return true
}

// checkSlotIDs: concurrent attempts with one ID hold one slot.
func checkSlotIDs(t *testing.T, open Open) {
	s, l := newSubject(t, open), slotLimit(t, 5, time.Minute)
	var attempts sync.WaitGroup
	for range racers {
		attempts.Go(func() {
			if _, allowed, err := s.store.Take(t.Context(), nil, []store.Charge{slotOf("k", l, 1)}, mete.Mode{ID: "one"}); err != nil || !allowed {
				t.Errorf("denied: %v", err)
			}
		})
	}
	attempts.Wait()
	s.assertHeld("k", l, 1)
}
