// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A saboteur is a store in memory with a defect, which shows itself in some calls. Each function is nil or one defect.
type saboteur struct {
	store.Store
	store.Holder
	take   func(s *saboteur, charges []store.Charge, mode *mete.Mode) []store.Charge
	answer func(snaps []bucket.Snapshot, allowed bool, mode mete.Mode) bool
	refund func(s *saboteur, refunds []mete.Refund, id *string) []mete.Refund
	reset  func(s *saboteur, keys []string) []string
	hold   func(s *saboteur, charges []store.Charge, h *store.Hold, again bool)
	settle func(s *saboteur, h madeHold, status store.HoldStatus, actual bucket.Tokens)

	stepped bool // with a clock that steps ahead
	calls   atomic.Int64
	holds   sync.Map // of madeHold, by the IDs of the store
	asked   sync.Map // the IDs of holds that were asked for
}

// A madeHold is an admitted hold.
type madeHold struct {
	charges []store.Charge
	terms   []store.Terms
}

// nowAndThen is true for one of n calls.
func (s *saboteur) nowAndThen(n int64) bool {
	return s.calls.Add(1)%n == 0
}

func (s *saboteur) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	asked := mode
	if s.take != nil {
		charges = s.take(s, charges, &mode)
	}
	snaps, allowed, err := s.Store.Take(ctx, dst, charges, mode)
	if s.answer != nil {
		allowed = s.answer(snaps, allowed, asked)
	}
	return snaps, allowed, err
}

func (s *saboteur) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	if s.refund != nil {
		refunds = s.refund(s, refunds, &id)
	}
	return s.Store.Refund(ctx, refunds, id)
}

func (s *saboteur) Reset(ctx context.Context, keys []string) error {
	if s.reset != nil {
		keys = s.reset(s, keys)
	}
	return s.Store.Reset(ctx, keys)
}

func (s *saboteur) Hold(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode, h store.Hold) ([]bucket.Snapshot, string, error) {
	if _, again := s.asked.LoadOrStore(h.ID, true); s.hold != nil {
		s.hold(s, charges, &h, again)
	}
	snaps, id, err := s.Holder.Hold(ctx, dst, charges, mode, h)
	if id != "" {
		s.holds.Store(id, madeHold{charges, h.Terms})
	}
	return snaps, id, err
}

func (s *saboteur) Settle(ctx context.Context, id string, actual ...bucket.Tokens) (store.HoldStatus, error) {
	status, err := s.Holder.Settle(ctx, id, actual...)
	if h, ok := s.holds.Load(id); ok && s.settle != nil {
		s.settle(s, h.(madeHold), status, actual[0])
	}
	return status, err
}

// plain reports whether a take has several buckets and no special mode.
func plain(charges []store.Charge, mode *mete.Mode) bool {
	return len(charges) > 1 && !store.HasSlots(charges) && !mode.DryRun && !mode.UpTo
}

var sabotages = []*struct {
	name string
	saboteur
}{
	{name: "an ID is charged twice", saboteur: saboteur{take: func(_ *saboteur, charges []store.Charge, mode *mete.Mode) []store.Charge {
		mode.ID = ""
		return charges
	}}},
	{name: "a denied take charges one of its buckets", saboteur: saboteur{take: func(s *saboteur, charges []store.Charge, mode *mete.Mode) []store.Charge {
		if plain(charges, mode) && s.nowAndThen(3) {
			if _, allowed, _ := s.Store.Take(context.Background(), nil, charges, mete.Mode{DryRun: true}); !allowed {
				_, _, _ = s.Store.Take(context.Background(), nil, charges[:1], mete.Mode{})
			}
		}
		return charges
	}}},
	{name: "a take is admitted and not charged", saboteur: saboteur{take: func(s *saboteur, charges []store.Charge, mode *mete.Mode) []store.Charge {
		mode.DryRun = mode.DryRun || !store.HasSlots(charges) && s.nowAndThen(20)
		return charges
	}}},
	{name: "a take is two steps", saboteur: saboteur{take: func(s *saboteur, charges []store.Charge, mode *mete.Mode) []store.Charge {
		if plain(charges, mode) && s.nowAndThen(4) {
			_, allowed, _ := s.Store.Take(context.Background(), nil, charges[:1], mete.Mode{})
			pause()
			if allowed {
				_ = s.Store.Refund(context.Background(), []mete.Refund{{Charge: charges[0]}}, "")
			}
		}
		return charges
	}}},
	{name: "a take is denied although there are tokens", saboteur: saboteur{answer: func(snaps []bucket.Snapshot, allowed bool, mode mete.Mode) bool {
		return allowed && (len(snaps) == 0 || snaps[0].Missing()%400 != 0)
	}}},
	{name: "a refund is done twice", saboteur: saboteur{refund: func(s *saboteur, refunds []mete.Refund, id *string) []mete.Refund {
		if *id = ""; s.nowAndThen(4) {
			_ = s.Store.Refund(context.Background(), refunds, "")
		}
		return refunds
	}}},
	{name: "a refund is lost", saboteur: saboteur{refund: func(s *saboteur, refunds []mete.Refund, _ *string) []mete.Refund {
		if s.nowAndThen(4) {
			return refunds[:len(refunds)-1]
		}
		return refunds
	}}},
	{name: "a reset omits a key", saboteur: saboteur{reset: func(s *saboteur, keys []string) []string {
		return keys[:len(keys)-1]
	}}},
	{name: "a released slot stays", saboteur: saboteur{refund: func(s *saboteur, refunds []mete.Refund, _ *string) []mete.Refund {
		return slices.DeleteFunc(refunds, func(r mete.Refund) bool { return store.HasSlots([]store.Charge{r.Charge}) && s.nowAndThen(2) })
	}}},
	{name: "a slot above the maximum is admitted", saboteur: saboteur{answer: func(snaps []bucket.Snapshot, allowed bool, _ mete.Mode) bool {
		for i := range snaps {
			full := snaps[i].Cost == token && snaps[i].Missing() == 3*token
			snaps[i].Allowed = snaps[i].Allowed || full
		}
		return allowed || len(snaps) > 0 && !slices.ContainsFunc(snaps, func(s bucket.Snapshot) bool { return !s.Allowed })
	}}},
	{name: "a part of a cost is less than the tokens that are there", saboteur: saboteur{take: func(_ *saboteur, charges []store.Charge, mode *mete.Mode) []store.Charge {
		charges = slices.Clone(charges)
		for i := range charges {
			if mode.UpTo {
				charges[i].Cost = max(charges[i].Cost/2, 1)
			}
		}
		return charges
	}}},
	{name: "a hold is charged twice", saboteur: saboteur{hold: func(s *saboteur, charges []store.Charge, _ *store.Hold, again bool) {
		if again && !store.HasSlots(charges) {
			_, _, _ = s.Store.Take(context.Background(), nil, charges, mete.Mode{})
		}
	}}},
	{name: "a hold is settled twice", saboteur: saboteur{settle: func(s *saboteur, h madeHold, status store.HoldStatus, actual bucket.Tokens) {
		if status.Settled || status.State != store.HoldSettled {
			return
		}
		var refunds []mete.Refund
		for i, c := range h.charges {
			if target := h.terms[min(i, len(h.terms)-1)].Target(c.Cost, actual); target < c.Cost && !store.HasSlots(h.charges[i:i+1]) {
				c.Cost -= target
				refunds = append(refunds, mete.Refund{Charge: c})
			}
		}
		_ = s.Store.Refund(context.Background(), refunds, "")
	}}},
	{name: "an expired hold keeps its charge", saboteur: saboteur{stepped: true, hold: func(_ *saboteur, _ []store.Charge, h *store.Hold, _ bool) {
		h.Refund = false
	}}},
	{name: "a hold lasts too long", saboteur: saboteur{stepped: true, hold: func(_ *saboteur, _ []store.Charge, h *store.Hold, _ bool) {
		h.TTL *= 2
	}}},
}

// TestSabotage checks that the search notices defects of a store, and accepts a store without a defect.
func TestSabotage(t *testing.T) {
	for _, defect := range sabotages {
		t.Run(defect.name, func(t *testing.T) {
			if !defect.shows(t, 60) {
				t.Error("no history shows the defect")
			}
		})
	}
	for _, stepped := range []bool{false, true} {
		if s := (&saboteur{stepped: stepped}); s.shows(t, 10) {
			t.Error("a history shows a defect, but there is none")
		}
	}
}

// shows reports whether one of several histories shows the defect.
func (s *saboteur) shows(t *testing.T, seeds uint64) bool {
	for seed := range seeds {
		w := startMemory(t, s.stepped)
		s.Store, s.Holder = w.stores[0], w.stores[0].(store.Holder)
		w.stores[0] = s
		if perform(t, w, &w.faults[0], seed).check(shortPatience) == porcupine.Illegal {
			return true
		}
	}
	return false
}

// pause lets other goroutines run.
func pause() {
	for range 100 {
		runtime.Gosched()
	}
}

// An inParts is a store in memory that takes several keys one after another, as a cluster does. It has defects.
type inParts struct {
	store.Store
	undo   func(refunds []mete.Refund) []mete.Refund // changes the refunds after a denial
	skip   int                                       // the number of keys that an admitted take does not charge
	undone sync.Map                                  // IDs of denied takes, whose parts must not answer a retry
}

func (s *inParts) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	var taken []mete.Refund
	for i := range charges {
		one := mode
		one.DryRun = mode.DryRun || i > 0 && i <= s.skip
		if mode.ID != "" {
			attempt, _ := s.undone.Load(mode.ID)
			one.ID += fmt.Sprint(len(charges), attempt)
		}
		snaps, allowed, err := s.Store.Take(ctx, nil, charges[i:i+1], one)
		if err != nil {
			return dst, false, err
		}
		dst = append(dst, snaps...)
		if allowed && !mode.DryRun {
			taken = append(taken, mete.Refund{Charge: charges[i], Taken: snaps[0].Taken()})
			pause()
			continue
		}
		if !allowed && !mode.DryRun {
			s.undone.Store(mode.ID, rand.Text())
			if len(taken) > 0 {
				_ = s.Refund(ctx, s.undo(taken), "")
			}
			all, _, err := s.Store.Take(ctx, nil, charges, mete.Mode{DryRun: true})
			all[i] = snaps[0]
			return all, false, err
		}
	}
	return dst, !slices.ContainsFunc(dst, func(s bucket.Snapshot) bool { return !s.Allowed }), nil
}

// TestSabotage_Parts checks that a history of takes in parts may be right, and that the search notices defects.
func TestSabotage_Parts(t *testing.T) {
	same := func(r []mete.Refund) []mete.Refund { return r }
	for name, s := range map[string]*inParts{
		"":                     {undo: same},
		"undo twice":           {undo: func(r []mete.Refund) []mete.Refund { r[0].Cost *= 2; r[0].Taken.Cost *= 2; return r }},
		"undo nothing":         {undo: func(r []mete.Refund) []mete.Refund { return r[:0] }},
		"charge a key too few": {undo: same, skip: 1},
	} {
		t.Run(name, func(t *testing.T) {
			illegal := 0
			for seed := uint64(0); seed < 100 && illegal == 0 && (name != "" || seed < 3); seed++ {
				w := startMemory(t, false)
				w.versions, w.slots, w.holds, w.parts, w.quiesce, w.each = false, false, false, true, func([]store.Store) {}, 2
				w.capacity = 4 * token
				s.Store = w.stores[0]
				w.stores[0] = s
				h := perform(t, w, nil, seed)
				if h.check(shortPatience) == porcupine.Illegal {
					illegal++
				}
			}
			if (illegal > 0) != (name != "") {
				t.Errorf("%d histories have no explanation", illegal)
			}
		})
	}
}
