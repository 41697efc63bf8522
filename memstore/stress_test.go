// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
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

// The model admits every cost that a small store admits: at the bound a store may deny more, but never admit more.
func TestStress_SmallStoreAgainstTheModel(t *testing.T) {
	limits := []bucket.Limit{
		memstore.LimitOf(t, 5*bucket.Token, 1, time.Second), memstore.LimitOf(t, 5*bucket.Token, 5*bucket.Token, time.Second),
		memstore.LimitOf(t, 1000*bucket.Token, bucket.MaxTokens/1000, time.Second), memstore.LimitOf(t, 3*bucket.Token, bucket.Token, 7*time.Millisecond),
		memstore.LimitOf(t, 50, 1, 13*time.Hour), memstore.LimitOf(t, bucket.MaxTokens/1000, 123456789*bucket.Token, time.Millisecond),
	}
	for seed := range uint64(40) {
		r := rand.New(testseed.PCG(seed, 5))
		clock := storetest.NewClock()
		s := mustNew(t, memstore.Config{MaxKeys: 1 + r.IntN(60), Now: clock.Now})
		model, keys := storetest.NewModel(clock.Now), 2+r.IntN(200)
		for step := range 1500 {
			clock.Advance(r.Int64N([]int64{20_000, 20_000, 100_000_000, 100_000_000_000}[r.IntN(100)/97]))
			charges := someCharges(r, keys, limits)
			mode := mete.Mode{DryRun: r.IntN(4) == 0}
			if r.IntN(4) == 0 {
				mode.MaxWait = time.Duration(r.Int64N(int64(10 * time.Second)))
			}
			switch r.IntN(40) {
			case 0:
				s.Refund(t.Context(), storetest.Refunds(charges...), "")
				model.Refund(t.Context(), storetest.Refunds(charges...), "")
				continue
			case 1:
				s.Reset(t.Context(), []string{charges[0].Key})
				model.Reset(t.Context(), []string{charges[0].Key})
				continue
			}
			_, allowed, err := s.Take(t.Context(), nil, charges, mode)
			if err != nil {
				t.Fatal(err)
			}
			if !allowed || mode.DryRun {
				continue
			}
			if _, want, _ := model.Take(t.Context(), nil, charges, mode); !want {
				t.Fatalf("seed %d, step %d: %+v admits %+v, the model does not", seed, step, s.Stats(), charges)
			}
		}
		memstore.CheckInvariants(t, s)
	}
}

func someCharges(r *rand.Rand, keys int, limits []bucket.Limit) []store.Charge {
	first, n := r.IntN(keys), 1+r.IntN(4)*r.IntN(2)
	var charges []store.Charge
	for k := first; k < min(first+n, keys); k++ {
		l := limits[k%len(limits)]
		charges = append(charges, store.Charge{Key: fmt.Sprintf("k%05d", k), Limit: l, Cost: bucket.Tokens(r.Int64N(int64(l.Capacity()) + 2))})
	}
	slices.SortFunc(charges, func(a, b store.Charge) int { return strings.Compare(a.Key, b.Key) })
	return charges
}

// One key has 5 tokens that refill in hours, while the store becomes full and has room again. The key never
// gets a sixth.
func TestStress_RoomAndOverflow(t *testing.T) {
	slow, quick := memstore.LimitOf(t, 5*bucket.Token, 1, time.Second), memstore.LimitOf(t, bucket.Token, bucket.Token, time.Millisecond)
	for round := range 1500 {
		clock := storetest.NewClock()
		s := mustNew(t, memstore.Config{MaxKeys: 2, Now: clock.Now})
		for i, found := 0, 0; found < 2; i++ { // two buckets in the key's own shard
			if key := fmt.Sprint("quick", i); s.SameShard(key, "k") {
				take(t, s, key, quick, bucket.Token)
				found++
			}
		}
		var admitted atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 3 {
			wg.Go(func() {
				<-start
				for range 8 {
					if take(t, s, "k", slow, bucket.Token).Allowed {
						admitted.Add(1)
					}
				}
			})
		}
		wg.Go(func() {
			<-start
			clock.Advance(200_000)
		})
		close(start)
		wg.Wait()
		if got := admitted.Load(); got > 5 {
			t.Fatalf("round %d: a bucket of 5 admitted %d", round, got)
		}
	}
}

// Many goroutines run on the process's clock and on a counting one, with and without room. No key exceeds its
// limit, and no lock remains.
func TestStress_ManyGoroutines(t *testing.T) {
	for _, tc := range []struct {
		maxKeys, keys int
		counting      bool // the clock
		changing      bool // the limits
	}{
		{1, 3, false, false}, {1, 3, true, false}, {5, 9, true, false}, {30, 60, false, false}, {300, 900, true, false},
		{1 << 20, 5000, false, true}, {1 << 20, 50, false, true}, {1 << 20, 50, true, true},
	} {
		t.Run(fmt.Sprintf("%+v", tc), func(t *testing.T) {
			var calls atomic.Int64
			c := memstore.Config{MaxKeys: tc.maxKeys}
			if tc.counting {
				c.Now = func() bucket.Instant {
					runtime.Gosched() // whatever is locked now, let others find it so
					return bucket.Instant(1_700_000_000_000_000 + calls.Add(1))
				}
			}
			now := c.Now
			if now == nil {
				now = func() bucket.Instant { return bucket.At(time.Now()) }
			}
			s := mustNew(t, c)
			limits := []bucket.Limit{
				memstore.LimitOf(t, 20*bucket.Token, bucket.Token, time.Hour), memstore.LimitOf(t, 5*bucket.Token, 5*bucket.Token, 20*time.Millisecond),
				memstore.LimitOf(t, 10*bucket.Token, bucket.Token, 3*time.Millisecond), memstore.LimitOf(t, 2, 1, time.Millisecond),
			}
			slower := memstore.LimitOf(t, 5*bucket.Token, 5*bucket.Token, 33*time.Millisecond) // in place of limits[1]
			admitted, begin := make([]atomic.Int64, tc.keys), now()
			var wg sync.WaitGroup
			for w := range 8 {
				wg.Go(func() {
					r := rand.New(testseed.PCG(uint64(w), 99))
					for range 2500 {
						charges := someCharges(r, tc.keys, limits)
						for i := range charges {
							charges[i].Cost = charges[i].Limit.Capacity()/5 + 1
							if tc.changing && charges[i].Limit == limits[1] && r.IntN(2) == 0 {
								charges[i].Limit = slower
							}
						}
						mode := mete.Mode{DryRun: r.IntN(10) == 0}
						_, allowed, err := s.Take(t.Context(), nil, charges, mode)
						if err != nil {
							t.Error(err)
						}
						for _, c := range charges {
							if allowed && !mode.DryRun {
								var k int
								fmt.Sscanf(c.Key, "k%d", &k)
								admitted[k].Add(int64(c.Cost))
							}
						}
					}
				})
			}
			wg.Wait()
			elapsed := float64(now() - begin)
			for k := range admitted {
				n, p := limits[k%len(limits)].Refill()
				bound := float64(limits[k%len(limits)].Capacity()) + elapsed*float64(n)/float64(p)
				if got := float64(admitted[k].Load()); got > bound+1 {
					t.Errorf("key %d: %.0f thousandths admitted, bound %.0f", k, got, bound)
				}
			}
			memstore.CheckInvariants(t, s)
		})
	}
}
