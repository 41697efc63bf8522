// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
)

// A holdTiming has the limits of a comparison, the next instant of the clock, and the TTLs of its holds.
type holdTiming struct {
	limits func(*testing.T, *rand.Rand) []bucket.Limit
	next   func(r *rand.Rand, now bucket.Instant, limits []bucket.Limit) bucket.Instant
	ttl    func(*rand.Rand) time.Duration
	begin  bucket.Instant // of the clock, or 0
	stream uint64         // of the random numbers
	// refunds makes half of the holds refund at their expiry. The clock then never steps back.
	refunds bool
}

var microHolds = holdTiming{
	limits: randomLimits,
	next:   func(r *rand.Rand, now bucket.Instant, _ []bucket.Limit) bucket.Instant { return randomInstant(r, now) },
	ttl: func(r *rand.Rand) time.Duration {
		return time.Duration(1000+r.Int64N(1<<(1+r.IntN(24)))) * time.Microsecond
	},
	refunds: true,
	stream:  8,
}

// In backwardHolds, about a third of the steps of the clock go back, often beyond the beginning of a hold.
var backwardHolds = holdTiming{
	limits: microHolds.limits,
	next: func(r *rand.Rand, now bucket.Instant, _ []bucket.Limit) bucket.Instant {
		if r.IntN(3) == 0 {
			return max(now-bucket.Instant(r.Int64N(1<<(1+r.IntN(24)))), 0)
		}
		return randomInstant(r, now)
	},
	ttl:    microHolds.ttl,
	stream: 9,
}

// checkHoldModel runs the same random operations with holds against the store and against [Model].
func checkHoldModel(t *testing.T, open Open) { compareHolds(t, open, 4, seedsOf(12), microHolds) }

// checkHoldModelSingly uses one bucket at a time.
func checkHoldModelSingly(t *testing.T, open Open) { compareHolds(t, open, 1, seedsOf(12), microHolds) }

// checkHoldModelBack is checkHoldModel with a clock that also steps back. No hold is refunded at its expiry: such a refund stays
// if the clock steps back, so it depends on the calls before. A store may drop a history that has ended, so the clock
// never steps back before such an end.
func checkHoldModelBack(t *testing.T, open Open) {
	compareHolds(t, open, 4, seedsOf(6), backwardHolds)
}

func checkHoldModelBackSingly(t *testing.T, open Open) {
	compareHolds(t, open, 1, seedsOf(6), backwardHolds)
}

func compareHolds(t *testing.T, open Open, buckets int, seeds uint64, timing holdTiming) {
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			s := newSubject(t, open)
			model := NewModel(s.clock.Now)
			r := rand.New(testseed.PCG(seed, timing.stream))
			limits := timing.limits(t, r)
			if timing.begin > 0 {
				s.clock.Set(timing.begin)
			}
			number, ids, earliest := 0, []string(nil), bucket.Instant(0)
			var charges []store.Charge
			for step := range 300 {
				earliest = max(earliest, model.lastEnded(s.clock.Now()))
				if timing.refunds {
					earliest = s.clock.Now()
				}
				s.clock.Set(max(timing.next(r, s.clock.Now(), limits), earliest))
				if step == 0 || r.IntN(4) > 0 {
					charges = randomCharges(r, limits, buckets)
					number++
				}
				if len(ids) > 0 && r.IntN(3) == 0 {
					if !s.sameSettlement(model, r, ids[r.IntN(len(ids))], timing.ttl) {
						t.Fatalf("the store differs from the model in step %d of seed %d", step, seed)
					}
					continue
				}
				if r.IntN(2) > 0 {
					if !sameStep(s, model, r, charges) {
						t.Fatalf("the store differs from the model in step %d of seed %d", step, seed)
					}
					continue
				}
				if r.IntN(3) > 0 { // else again
					number++
				}
				id, ok := s.sameHold(model, r, charges, number, timing)
				if !ok {
					t.Fatalf("the store differs from the model in step %d of seed %d", step, seed)
				}
				if id != "" {
					ids = append(ids, id)
				}
			}
		})
	}
}

func (s *subject) sameHold(model *Model, r *rand.Rand, charges []store.Charge, number int, timing holdTiming) (string, bool) {
	s.Helper()
	h := store.Hold{ID: holdID(number), TTL: timing.ttl(r), Refund: timing.refunds && r.IntN(2) == 0}
	for _, c := range charges {
		var terms store.Terms
		switch r.IntN(6) {
		case 0:
			terms.Kept = true
		case 1:
			terms.Fixed = bucket.Tokens(r.Int64N(int64(c.Cost) + 1))
		case 2:
			terms.Asked = 1 + bucket.Tokens(r.Int64N(int64(c.Cost)+1))
		}
		terms.Unit = uint8(r.IntN(4))
		h.Terms = append(h.Terms, terms)
	}
	mode := mete.Mode{}
	if r.IntN(3) == 0 {
		mode.MaxWait = time.Duration(r.Int64N(20_000_000)) * time.Microsecond
	}
	got, id := s.hold(h, mode, charges...)
	want, wantID, err := model.Hold(s.Context(), nil, charges, mode, h)
	if err != nil {
		s.Fatal(err)
	}
	if (id == "") != (wantID == "") || !slices.Equal(got, want) {
		s.Errorf("at %d, hold %+v %+v %+v:\n got %q %s\nwant %q %s", s.clock.Now(), h, mode, charges, id, show(got), wantID, show(want))
		return "", false
	}
	return id, true
}

func (s *subject) sameSettlement(model *Model, r *rand.Rand, id string, randomTTL func(*rand.Rand) time.Duration) bool {
	s.Helper()
	base := id[:len(holdID(0))]
	if r.IntN(4) == 0 {
		ttl := randomTTL(r)
		got, err := s.holder().Renew(s.Context(), id, ttl)
		want, _ := model.Renew(s.Context(), base, ttl)
		if err != nil || got != want {
			s.Errorf("at %d, renew %q for %v: got %+v, want %+v, error %v", s.clock.Now(), id, ttl, got, want, err)
			return false
		}
		return true
	}
	actual := []bucket.Tokens{bucket.Tokens(r.Int64N(1 << (1 + r.IntN(24))))}
	if r.IntN(3) == 0 {
		actual = append(actual, store.Keep, actual[0]/2)
	}
	got := s.settle(id, actual...)
	if want, _ := model.Settle(s.Context(), base, actual...); got != want {
		s.Errorf("at %d, settle %q with %v: got %+v, want %+v", s.clock.Now(), id, actual, got, want)
		return false
	}
	return true
}

// lastEnded returns the latest end of a history at most now.
func (s *Model) lastEnded(now bucket.Instant) (last bucket.Instant) {
	for _, row := range s.rows {
		for i := range row {
			if h := row[i].State.History; h != nil && h.Until <= now {
				last = max(last, h.Until)
			}
		}
	}
	return last
}
