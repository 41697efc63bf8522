// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
)

const (
	racers = 8
	laps   = 400 // takes of each racer
)

func race(f func(r *rand.Rand)) {
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() { f(rand.New(testseed.PCG(uint64(i), 3))) })
	}
	wg.Wait()
}

// checkConservation takes from one bucket in many goroutines while the clock advances. The sum of the takes and the
// rest must equal the initial content plus the refill, to the thousandth.
func checkConservation(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 500*bucket.Token, "1/1ms")
	var admitted atomic.Int64
	// The bucket is never full from here on, so no refill is lost: the racers take more than the refill.
	s.take(mete.Mode{}, store.Charge{Key: "k", Limit: l, Cost: 100 * bucket.Token})
	admitted.Add(int64(100 * bucket.Token))
	race(func(r *rand.Rand) {
		for range laps {
			s.clock.Advance(r.Int64N(40))
			cost := bucket.Tokens(1 + r.Int64N(3000))
			_, allowed, err := s.store.Take(t.Context(), nil, []store.Charge{{Key: "k", Limit: l, Cost: cost}}, mete.Mode{})
			if err != nil {
				t.Error(err)
				return
			}
			if allowed {
				admitted.Add(int64(cost))
			}
		}
	})
	// The bound from a full bucket in one interval. A microsecond refills a thousandth.
	elapsed := int64(s.clock.Now() - start)
	if bound := int64(l.Capacity()) + elapsed; admitted.Load() > bound {
		t.Errorf("admitted %d thousandths in %d µs, at most %d are allowed", admitted.Load(), elapsed, bound)
	}
	s.assertRemaining("k", l, l.Capacity()+bucket.Tokens(elapsed)-bucket.Tokens(admitted.Load()))
}

// checkSerialization takes from overlapping sets of buckets in many goroutines. Each bucket must be charged exactly the
// admitted cost, and no lock may remain.
func checkSerialization(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 300*bucket.Token, "1/1000h")
	keys := []string{"a", "b", "c", "d", "e"}
	spent := make([]atomic.Int64, len(keys))
	race(func(r *rand.Rand) {
		for range laps {
			var charges []store.Charge
			var chosen []int
			for i, k := range keys {
				if r.IntN(2) == 0 {
					charges = append(charges, store.Charge{Key: k, Limit: l, Cost: bucket.Token})
					chosen = append(chosen, i)
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
			for _, i := range chosen {
				if allowed {
					spent[i].Add(int64(bucket.Token))
				}
			}
		}
	})
	empty := 0
	for i, k := range keys {
		left := l.Capacity() - bucket.Tokens(spent[i].Load())
		if s.assertRemaining(k, l, left); left == 0 {
			empty++
		}
	}
	if empty == 0 {
		t.Error("no bucket ran empty: the run is too short to mean anything")
	}
}
