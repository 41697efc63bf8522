// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
)

// checkSlotPenalty: a slot has no penalty. Its denial neither starts nor prevents the penalty of a bucket that denies.
func checkSlotPenalty(t *testing.T, open Open) {
	s, l, tokens := newSubject(t, open), slotLimit(t, 1, time.Hour), limit(t, bucket.Token, "1/1h")
	punished := store.Charge{Key: "{k}tokens", Limit: tokens, Cost: bucket.Token, Penalty: penalty(t, 2*time.Hour, 2*time.Hour, bucket.Token)}
	slot := slotOf("{k}slots", l, 2)
	slot.Penalty = punished.Penalty
	s.take(mete.Mode{}, slotOf("{k}slots", l, 1))
	s.asks(mete.Mode{}, time.Hour, 0, slot, punished) // the bucket admits
	s.asks(mete.Mode{DryRun: true}, 0, 0, punished)
	s.take(mete.Mode{}, punished)
	if snaps, allowed := s.take(mete.Mode{}, punished, slot); allowed || snaps[0].RetryAfter != 2*time.Hour {
		t.Errorf("both limits deny: got %v %s", allowed, show(snaps))
	}
	s.release(slotOf("{k}slots", l, 1))
	if snaps, allowed := s.take(mete.Mode{}, slot, punished); allowed || !snaps[0].Allowed {
		t.Errorf("a penalty denies: got %v %s", allowed, show(snaps))
	}
	s.assertHeld("{k}slots", l, 0)
}

// besideLimits are the limits of [checkSlotsBesideOthers].
type besideLimits struct{ slots, tokens, log, day bucket.Limit }

// checkSlotsBesideOthers compares random histories of takes with slots, held buckets, penalties and calendars with the model.
// The clock never steps back, as in [checkHoldModel].
func checkSlotsBesideOthers(t *testing.T, open Open) {
	for seed := range seedsOf(9) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			s := newSubject(t, open)
			r := rand.New(testseed.PCG(seed, 12))
			day := bucket.Calendar{Window: bucket.CalendarDay, Zone: "Europe/Berlin"}
			limits := besideLimits{
				slots: slotLimit(t, 1+r.IntN(3), time.Duration(1+r.Int64N(9e6))*time.Microsecond), tokens: limit(t, 20*bucket.Token, "5/1s"),
				log: limitKinds(t)["sliding log"],
				day: compile(t, bucket.Spec{
					Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorCalendar, Calendar: day,
					Rate: bucket.Rate{Tokens: 50 * bucket.Token, Per: day.Window.Length()}, Capacity: 60 * bucket.Token,
				}),
			}
			p := penalty(t, time.Second, 8*time.Second, 2*bucket.Token)
			s.clock.Set(bucket.At(time.Date(2026, 3, 28, 22, 59, 50, 0, time.UTC)))
			model, made := NewModel(s.clock.Now), besideHolds{}
			for step := range 300 {
				s.clock.Set(max(randomInstant(r, s.clock.Now()), s.clock.Now()))
				if !sameStepBeside(s, model, r, limits, p, step, &made) {
					t.Fatalf("the store differs from the model in step %d of seed %d", step, seed)
				}
			}
		})
	}
}

// besideHolds are the holds of [checkSlotsBesideOthers]. The last one may be repeated.
type besideHolds struct {
	ids    []string
	number int
	last   []store.Charge
}

func sameStepBeside(s *subject, model *Model, r *rand.Rand, limits besideLimits, p *bucket.Penalty, step int, made *besideHolds) bool {
	s.Helper()
	number := 1 + r.IntN(5)
	slots := []store.Charge{slotOf("{k}slots", limits.slots, number), slotOf("{k}more", limits.slots, number)}[r.IntN(2):]
	var buckets []store.Charge
	for i, l := range []bucket.Limit{limits.tokens, limits.log, limits.day} {
		c := charge(fmt.Sprint("{k}bucket", i), l, bucket.Tokens(r.Int64N(9000)))
		if r.IntN(2) == 0 {
			c.Penalty = p
		}
		if r.IntN(3) > 0 {
			buckets = append(buckets, c)
		}
	}
	switch r.IntN(8) {
	case 0, 1:
		s.release(slots...)
		_ = model.Refund(s.Context(), Refunds(slots...), "")
		return true
	case 2:
		if made.last == nil || r.IntN(3) > 0 { // else again
			made.number, made.last = step, slices.Concat(buckets, slots[:r.IntN(len(slots)+1)])
			slices.SortFunc(made.last, func(a, b store.Charge) int { return strings.Compare(a.Key, b.Key) })
		}
		if len(made.last) == 0 {
			return true
		}
		id, ok := s.sameHold(model, r, made.last, made.number, microHolds)
		if id != "" {
			made.ids = append(made.ids, id)
		}
		return ok
	case 3:
		return len(made.ids) == 0 || s.sameSettlement(model, r, made.ids[r.IntN(len(made.ids))], microHolds.ttl)
	}
	mode, charges := mete.Mode{DryRun: r.IntN(6) == 0, UpTo: r.IntN(6) == 0}, slices.Concat(slots, buckets)
	if !mode.UpTo && r.IntN(6) == 0 {
		mode.MaxWait = time.Duration(r.Int64N(5e9))
	}
	if r.IntN(3) == 0 {
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
