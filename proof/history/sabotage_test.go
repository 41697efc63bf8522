// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A saboteur is a store in memory with a defect, which shows itself in some calls.
type saboteur struct {
	store.Store
	store.Holder
	take   func(s *saboteur, charges []store.Charge, mode *mete.Mode) []store.Charge
	refund func(s *saboteur, refunds []mete.Refund, id *string) []mete.Refund
	answer func(snaps []bucket.Snapshot, allowed bool, mode mete.Mode) bool

	calls *atomic.Int64
}

// now and then is true for one of n calls.
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

func plain(charges []store.Charge, mode *mete.Mode) bool {
	return len(charges) > 1 && !store.HasSlots(charges) && !mode.DryRun && !mode.UpTo
}

var sabotages = []struct {
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
	{name: "a hold is settled twice", saboteur: saboteur{Holder: twice{}}},
	{name: "a hold is charged twice", saboteur: saboteur{Holder: forgetful{}}},
}

// twice refunds a settled hold again.
type twice struct{ store.Holder }

func (h twice) Settle(ctx context.Context, id string, actual ...bucket.Tokens) (store.HoldStatus, error) {
	status, err := h.Holder.Settle(ctx, id, actual...)
	if !status.Settled && status.State == store.HoldSettled {
		status.Settled = true
	}
	return status, err
}

// forgetful makes a new hold for each attempt.
type forgetful struct{ store.Holder }

var attempts atomic.Int64

func (h forgetful) Hold(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode, hold store.Hold) ([]bucket.Snapshot, string, error) {
	asked := hold.ID
	hold.ID += fmt.Sprint(attempts.Add(1))
	snaps, id, err := h.Holder.Hold(ctx, dst, charges, mode, hold)
	if strings.HasPrefix(id, asked) {
		id = asked
	}
	return snaps, id, err
}

func (h forgetful) Settle(_ context.Context, _ string, _ ...bucket.Tokens) (store.HoldStatus, error) {
	return store.HoldStatus{State: store.HoldOpen}, nil
}

// TestSabotage checks that the search notices defects of a store.
func TestSabotage(t *testing.T) {
	for _, defect := range sabotages {
		t.Run(defect.name, func(t *testing.T) {
			for seed := range uint64(60) {
				w := startMemory(t, false)
				s := &saboteur{Store: w.stores[0], take: defect.take, refund: defect.refund, answer: defect.answer, calls: new(atomic.Int64)}
				inner := w.stores[0].(store.Holder)
				switch defect.Holder.(type) {
				case twice:
					s.Holder = twice{inner}
				case forgetful:
					s.Holder = forgetful{inner}
				default:
					s.Holder = inner
				}
				w.stores[0] = s
				if perform(t, w, nil, seed).check(shortPatience) == porcupine.Illegal {
					return
				}
			}
			t.Error("no history shows the defect")
		})
	}
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
	undo func(refunds []mete.Refund) []mete.Refund // changes the refunds after a denial
	skip int                                       // the number of keys that an admitted take does not charge
	gone sync.Map                                  // IDs of denied takes, whose parts must not answer a retry
}

func (s *inParts) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	var taken []mete.Refund
	for i := range charges {
		one := mode
		one.DryRun = mode.DryRun || i > 0 && i <= s.skip
		if mode.ID != "" {
			attempt, _ := s.gone.Load(mode.ID)
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
			s.gone.Store(mode.ID, rand.Text())
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
