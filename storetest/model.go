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

// checkModel runs the same random operations against the store and against [Model], and compares every
// number. The clock also steps back and far ahead. The name of the subtest contains the seed.
func checkModel(t *testing.T, open Open) { compareWithModel(t, open, 4, seedsOf(20)) }

func checkModelBriefly(t *testing.T, open Open) { compareWithModel(t, open, 4, 3) }

// checkModelSingly uses one bucket at a time.
func checkModelSingly(t *testing.T, open Open) { compareWithModel(t, open, 1, seedsOf(20)) }

func compareWithModel(t *testing.T, open Open, buckets int, seeds uint64) {
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			s := newSubject(t, open)
			model := NewModel(s.clock.Now)
			r := rand.New(testseed.PCG(seed, 7))
			limits := randomLimits(t, r)
			var charges []store.Charge
			for step := range 400 {
				s.clock.Set(randomInstant(r, s.clock.Now()))
				if step == 0 || r.IntN(5) > 0 { // else again, so that a request may come twice
					charges = randomCharges(r, limits, buckets)
				}
				if !sameStep(s, model, r, charges) {
					t.Fatalf("the store differs from the model in step %d of seed %d", step, seed)
				}
			}
		})
	}
}

func randomLimits(t *testing.T, r *rand.Rand) []bucket.Limit {
	var limits []bucket.Limit
	for len(limits) < 12 {
		if l, _, err := randomSpec(r, len(limits)/2).Compile(); err == nil {
			limits = append(limits, l)
		}
	}
	return limits
}

// randomSpec returns a spec of one of six kinds, which may not compile.
func randomSpec(r *rand.Rand, kind int) bucket.Spec {
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
	switch kind {
	case 0, 1:
	case 2: // a leaky bucket
		spec.MaxReserved, spec.Queue = nil, bucket.Tokens(1+r.Int64N(20_000))
		if r.IntN(2) == 0 {
			spec.Capacity = bucket.Token
		}
	case 3:
		spec.Algorithm, spec.Anchor = bucket.AlgorithmStepped, bucket.Anchor(r.IntN(3))
		if spec.Anchor == bucket.AnchorEpoch && r.IntN(2) == 0 {
			spec.Start = time.Duration(r.Int64N(spec.Rate.Per.Microseconds())) * time.Microsecond
		}
		if r.IntN(4) == 0 {
			spec.MaxReserved, spec.Queue = nil, bucket.Tokens(1+r.Int64N(20_000))
		}
	default:
		spec.Algorithm, spec.Capacity = bucket.AlgorithmSlidingWindow, 0
		if kind == 5 {
			spec.Algorithm = bucket.AlgorithmSlidingLog
		}
		if spec.MaxReserved != nil {
			*spec.MaxReserved = 0
		}
	}
	return spec
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

func sameStep(s *subject, model *Model, r *rand.Rand, charges []store.Charge) bool {
	s.Helper()
	switch r.IntN(12) {
	case 0, 1:
		refunds, id := s.randomRefunds(r, charges), ""
		if r.IntN(3) == 0 {
			id = fmt.Sprint("refund", r.IntN(2))
		}
		if err := s.store.Refund(s.Context(), refunds, id); err != nil {
			s.Fatal(err)
		}
		model.Refund(s.Context(), refunds, id)
		return true
	case 2:
		keys := []string{charges[0].Key}
		if err := s.store.Reset(s.Context(), keys); err != nil {
			s.Fatal(err)
		}
		model.Reset(s.Context(), keys)
		return true
	}
	mode := randomMode(r)
	got, allowed := s.take(mode, charges...)
	if allowed && !mode.DryRun {
		s.remember(charges, got)
	}
	want, wantAllowed, _ := model.Take(s.Context(), nil, charges, mode)
	if allowed != wantAllowed || !slices.Equal(got, want) {
		s.Errorf("at %d, %+v %+v:\n got %v %s\nwant %v %s", s.clock.Now(), mode, charges, allowed, show(got), wantAllowed, show(want))
		return false
	}
	return true
}

// randomRefunds returns admin refunds of charges, or at random the full or partial cancellation of an earlier take.
func (s *subject) randomRefunds(r *rand.Rand, charges []store.Charge) []mete.Refund {
	if len(s.admitted) > 0 && r.IntN(3) > 0 {
		at := len(s.admitted) - 1 - min(r.IntN(len(s.admitted)), r.IntN(len(s.admitted)))
		refunds := s.admitted[at]
		s.admitted = slices.Delete(s.admitted, at, at+1)
		for i := range refunds {
			if r.IntN(3) == 0 {
				refunds[i].Cost = bucket.Tokens(r.Int64N(int64(refunds[i].Cost) + 1))
			}
		}
		return refunds
	}
	return Refunds(charges...)
}

func (s *subject) remember(charges []store.Charge, snaps []bucket.Snapshot) {
	var refunds []mete.Refund
	for i, snap := range snaps {
		if taken := snap.Taken(); taken.Cost > 0 {
			c := charges[i]
			c.Limit, c.Cost = snap.Limit, taken.Cost
			refunds = append(refunds, mete.Refund{Charge: c, Taken: taken})
		}
	}
	if len(refunds) > 0 {
		s.admitted = append(s.admitted, refunds)
	}
}

func randomMode(r *rand.Rand) mete.Mode {
	mode := mete.Mode{DryRun: r.IntN(5) == 0}
	switch r.IntN(8) {
	case 0, 1:
		mode.MaxWait = time.Duration(r.Int64N(20_000_000)) * time.Microsecond
	case 2:
		mode.MaxWait = bucket.Forced
	case 3:
		mode.UpTo = true
	}
	if r.IntN(2) == 0 {
		mode.ID = fmt.Sprint("request", r.IntN(2))
	}
	return mode
}

// randomCharges returns at most most charges with distinct keys, in order.
func randomCharges(r *rand.Rand, limits []bucket.Limit, most int) []store.Charge {
	var charges []store.Charge
	for _, k := range r.Perm(16)[:1+r.IntN(most)] {
		l := limits[k%len(limits)] // mostly one limit for a key
		if r.IntN(10) == 0 {
			l = limits[r.IntN(len(limits))]
		}
		cost := bucket.Tokens(r.Int64N(int64(l.Capacity())/2 + 2))
		switch r.IntN(10) {
		case 0:
			cost = bucket.Tokens(r.Int64N(int64(l.Capacity())*2 + 2))
		case 1, 2: // a few, so that a request may come again
			cost = l.Capacity() / bucket.Tokens(1+r.IntN(4))
		}
		key := fmt.Sprintf("key%02d", k)
		c := store.Charge{Key: key, Limit: l.ForKey(key), Cost: cost}
		if r.IntN(3) == 0 {
			c.Await = time.Duration(1+r.Int64N(1<<(1+r.IntN(24)))) * time.Microsecond
		}
		charges = append(charges, c)
	}
	slices.SortFunc(charges, func(a, b store.Charge) int { return strings.Compare(a.Key, b.Key) })
	return charges
}

func show(snaps []bucket.Snapshot) string {
	var text string
	for _, s := range snaps {
		text += fmt.Sprintf("[%v cost %v remaining %v retry %v full %v wait %v]", s.Allowed, s.Cost, s.Remaining(), s.RetryAfter, s.FullAfter(), s.Wait())
	}
	return text
}

// seedsOf returns the number of random runs: a third in a short test.
func seedsOf(most uint64) uint64 {
	if testing.Short() {
		return most / 3
	}
	return most
}
