// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// halfAnHour is half an hour into windows of an hour.
const halfAnHour = bucket.Instant(1_700_000_000_000_000/3_600_000_000*3_600_000_000 + 1_800_000_000)

// steadyLimits returns limits of each algorithm that hold 100 tokens and refill nothing around [halfAnHour].
func steadyLimits(t *testing.T) []bucket.Limit {
	t.Helper()
	const full = 100 * bucket.Token
	slow := bucket.Rate{Tokens: 1, Per: 10 * time.Hour}
	var limits []bucket.Limit
	for _, spec := range []bucket.Spec{
		{Capacity: full, Rate: slow},
		{Capacity: full, Rate: bucket.Rate{Tokens: 1, Per: 9 * time.Hour}},
		{Capacity: full, Rate: slow, Algorithm: bucket.AlgorithmStepped, Start: 7 * time.Hour},
		{Capacity: full, Rate: slow, Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorFirst},
		{Rate: bucket.Rate{Tokens: full, Per: time.Hour}, Algorithm: bucket.AlgorithmSlidingWindow},
		{Rate: bucket.Rate{Tokens: full, Per: time.Hour}, Algorithm: bucket.AlgorithmSlidingLog},
	} {
		l, _, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		limits = append(limits, l)
	}
	return limits
}

// Limits change their algorithm while many goroutines take, refund, and add keys that make shards grow, and the
// clock steps back and forth. The deficit of a bucket stays equal to its takes.
func TestStress_ChangingAlgorithmsConserve(t *testing.T) {
	limits := steadyLimits(t)
	for _, rarely := range []int{2, 40, 1000} { // how rarely a limit changes
		t.Run(fmt.Sprint(rarely), func(t *testing.T) {
			clock := storetest.NewClock()
			clock.Set(halfAnHour)
			s := mustNew(t, memstore.Config{Now: func() bucket.Instant {
				runtime.Gosched() // whatever is locked now, let others find it so
				return clock.Now()
			}})
			keys := []string{"a", "b", "c"}
			// No bucket is ever full: in steps of ten hours, a take from a full bucket counts from the
			// last step. A window of an hour would refill them at once.
			for _, key := range keys {
				take(t, s, key, limits[0], bucket.Token)
			}
			var spent [3]atomic.Int64
			var current [3]atomic.Int64 // limits
			var wg sync.WaitGroup
			for w := range 6 {
				wg.Go(func() {
					r := rand.New(testseed.PCG(uint64(w), uint64(rarely)))
					for step := range 4000 {
						clock.Set(halfAnHour + bucket.Instant(r.Int64N(1000)))
						var chosen []int
						var charges []store.Charge
						for i := range keys {
							if r.IntN(rarely) == 0 {
								current[i].Store(r.Int64N(int64(len(limits))))
							}
							if r.IntN(2) == 0 {
								chosen = append(chosen, i)
								charges = append(charges, store.Charge{Key: keys[i], Limit: limits[current[i].Load()], Cost: bucket.Tokens(r.Int64N(40))})
							}
						}
						if step%16 == 0 {
							charges = append(charges, store.Charge{Key: fmt.Sprint("new", w, step), Limit: limits[0], Cost: 1})
						}
						if r.IntN(3) == 0 { // refund only spent tokens
							charges = slices.DeleteFunc(charges[:len(chosen)], func(c store.Charge) bool {
								i := slices.Index(keys, c.Key)
								if spent[i].Add(-int64(c.Cost)) >= 0 {
									return false
								}
								spent[i].Add(int64(c.Cost))
								return true
							})
							if err := s.Refund(t.Context(), storetest.Refunds(charges...), ""); err != nil {
								t.Error(err)
							}
							continue
						}
						_, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{})
						if err != nil {
							t.Error(err)
						}
						for j, i := range chosen {
							if allowed {
								spent[i].Add(int64(charges[j].Cost))
							}
						}
					}
				})
			}
			wg.Wait()
			for i, key := range keys {
				want := 99*bucket.Token - bucket.Tokens(spent[i].Load())
				if got := take(t, s, key, limits[0], 0).Remaining(); got != want {
					t.Errorf("bucket %q holds %v, want %v", key, got, want)
				}
			}
			memstore.CheckInvariants(t, s)
		})
	}
}
