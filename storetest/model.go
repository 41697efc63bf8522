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
)

// agreesWithModel runs the same random operations, on a clock that also steps
// back and far ahead, against the store and against [Naive]: every number must
// be the same. The seed is in the name of the subtest.
func agreesWithModel(t *testing.T, open Open) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			s := begin(t, open)
			model := NewNaive(s.clock.Now)
			r := rand.New(rand.NewPCG(seed, 7))
			limits := randomLimits(t, r)
			for step := range 400 {
				s.clock.Set(randomInstant(r, s.clock.Now()))
				if !sameStep(s, model, r, limits) {
					t.Fatalf("the store differs from the model in step %d of seed %d", step, seed)
				}
			}
		})
	}
}

func randomLimits(t *testing.T, r *rand.Rand) []bucket.Limit {
	var limits []bucket.Limit
	for len(limits) < 6 {
		spec := bucket.Spec{
			Capacity: bucket.Tokens(1 + r.Int64N(1<<(1+r.IntN(24)))),
			Rate: bucket.Rate{
				Tokens: bucket.Tokens(1 + r.Int64N(1<<(1+r.IntN(20)))),
				Per:    time.Duration(1+r.Int64N(1<<(1+r.IntN(30)))) * time.Microsecond,
			},
		}
		if r.IntN(3) == 0 {
			bound := bucket.Tokens(r.Int64N(20_000))
			spec.MaxReserved = &bound
		}
		if l, _, err := spec.Compile(); err == nil {
			limits = append(limits, l)
		}
	}
	return limits
}

func randomInstant(r *rand.Rand, now bucket.Instant) bucket.Instant {
	switch r.IntN(20) {
	case 0:
		return max(now-bucket.Instant(r.Int64N(5_000_000)), 0)
	case 1:
		return now + bucket.Instant(r.Int64N(86_400_000_000))
	case 2, 3, 4, 5:
		return now
	default:
		return now + bucket.Instant(r.Int64N(1<<(1+r.IntN(22))))
	}
}

// sameStep does one random operation with both stores, and says whether they
// answered the same.
func sameStep(s *subject, model *Naive, r *rand.Rand, limits []bucket.Limit) bool {
	s.Helper()
	charges := randomCharges(r, limits)
	switch r.IntN(12) {
	case 0:
		if err := s.store.Refund(s.Context(), charges); err != nil {
			s.Fatal(err)
		}
		model.Refund(s.Context(), charges)
		return true
	case 1:
		keys := []string{charges[0].Key}
		if err := s.store.Reset(s.Context(), keys); err != nil {
			s.Fatal(err)
		}
		model.Reset(s.Context(), keys)
		return true
	}
	mode := mete.Mode{DryRun: r.IntN(5) == 0}
	if r.IntN(4) == 0 {
		mode.MaxWait = time.Duration(r.Int64N(20_000_000)) * time.Microsecond
	}
	got, allowed := s.take(mode, charges...)
	want, wantAllowed, _ := model.Take(s.Context(), nil, charges, mode)
	if allowed != wantAllowed || !slices.Equal(got, want) {
		s.Errorf("at %d, %+v %+v:\n got %v %s\nwant %v %s", s.clock.Now(), mode, charges, allowed, show(got), wantAllowed, show(want))
		return false
	}
	return true
}

// randomCharges returns up to four charges with distinct keys, in order.
func randomCharges(r *rand.Rand, limits []bucket.Limit) []mete.Charge {
	var charges []mete.Charge
	for _, k := range r.Perm(8)[:1+r.IntN(4)] {
		l := limits[k%len(limits)] // mostly one limit for a key
		if r.IntN(10) == 0 {
			l = limits[r.IntN(len(limits))]
		}
		cost := bucket.Tokens(r.Int64N(int64(l.Capacity())/2 + 2))
		if r.IntN(8) == 0 {
			cost = bucket.Tokens(r.Int64N(int64(l.Capacity())*2 + 2))
		}
		charges = append(charges, mete.Charge{Key: fmt.Sprintf("key%d", k), Limit: l, Cost: cost})
	}
	slices.SortFunc(charges, func(a, b mete.Charge) int { return int(a.Key[3]) - int(b.Key[3]) })
	return charges
}

func show(snaps []bucket.Snapshot) string {
	var text string
	for _, s := range snaps {
		text += fmt.Sprintf("[%v remaining %v retry %v full %v wait %v]", s.Allowed, s.Remaining(), s.RetryAfter, s.FullAfter(), s.Wait())
	}
	return text
}
