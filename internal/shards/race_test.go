// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/shards"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// onEachStore runs a test with shards of the naive store and of a real one.
func onEachStore(t *testing.T, f func(t *testing.T, shared mete.Store, clock *storetest.Clock)) {
	t.Run("naive", func(t *testing.T) {
		clock := storetest.NewClock()
		f(t, shards.New(storetest.NewModel(clock.Now), rand.IntN), clock)
	})
	t.Run("memstore", func(t *testing.T) {
		clock := storetest.NewClock()
		shared, err := memstore.New(memstore.Config{Now: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		f(t, shards.New(shared, rand.IntN), clock)
	})
}

// compete takes 400 times in each of eight goroutines, and returns the admitted amount.
func compete(t *testing.T, shared mete.Store, c store.Charge, most int64, pause func(r *rand.Rand)) bucket.Tokens {
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			r := rand.New(testseed.PCG(uint64(i), 11))
			c := c
			for range 400 {
				pause(r)
				c.Cost = bucket.Tokens(1 + r.Int64N(most))
				_, allowed, err := shared.Take(t.Context(), nil, []store.Charge{c}, mete.Mode{})
				if err != nil {
					t.Error(err)
					return
				}
				if allowed {
					admitted.Add(int64(c.Cost))
				}
			}
		})
	}
	wg.Wait()
	return bucket.Tokens(admitted.Load())
}

// TestSharded_Conserves is G1 for the sum, without a clock: the admitted amount and the rest add up to the
// capacity, to the thousandth.
func TestSharded_Conserves(t *testing.T) {
	onEachStore(t, func(t *testing.T, shared mete.Store, _ *storetest.Clock) {
		c := store.Charge{Key: "hot", Limit: tokens(t, 500, oneAnHour), Shards: 10}
		got := compete(t, shared, c, 3000, func(*rand.Rand) {})
		snaps, _, err := shared.Take(t.Context(), nil, []store.Charge{c}, mete.Mode{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		if left := snaps[0].Remaining(); got+left != 500*bucket.Token || left > bucket.Token {
			t.Errorf("admitted %v of 500, and %v are left; want next to nothing left, and nothing lost", got, left)
		}
	})
}

// TestSharded_Bound is G1 for the sum, with a clock: capacity + rate·t in any interval. Another goroutine moves
// the clock between the calls of one take, as several processes would see it.
func TestSharded_Bound(t *testing.T) {
	onEachStore(t, func(t *testing.T, shared mete.Store, clock *storetest.Clock) {
		start := clock.Now()
		c := store.Charge{Key: "hot", Limit: tokens(t, 200, bucket.Rate{Tokens: bucket.Token, Per: time.Millisecond}), Shards: 7}
		got := compete(t, shared, c, 3000, func(r *rand.Rand) { clock.Advance(r.Int64N(150)) })
		if most := c.Limit.Capacity() + bucket.Tokens(clock.Now()-start); got > most || got < most*9/10 {
			t.Errorf("admitted %v, want at most %v and not much less", got, most)
		}
	})
}

// TestSharded_RefundRaces: a refund during takes is neither doubled nor lost while shards lack it.
func TestSharded_RefundRaces(t *testing.T) {
	clock := storetest.NewClock()
	shared := shards.New(storetest.NewModel(clock.Now), rand.IntN)
	c := store.Charge{Key: "hot", Limit: tokens(t, 500, oneAnHour), Cost: 300 * bucket.Token, Shards: 10}
	take := func(c store.Charge) bool {
		_, allowed, err := shared.Take(context.Background(), nil, []store.Charge{c}, mete.Mode{})
		if err != nil {
			t.Error(err)
		}
		return allowed
	}
	take(c)
	c.Cost = 2 * bucket.Token
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if take(c) {
					if err := shared.Refund(context.Background(), storetest.Refunds(c), ""); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	snaps, _, _ := shared.Take(t.Context(), nil, []store.Charge{c}, mete.Mode{DryRun: true})
	if got := snaps[0].Remaining(); got != 200*bucket.Token {
		t.Errorf("%v remain after every take was refunded, want 200", got)
	}
}

// underUse offers load, in tokens per second, to one bucket and to shards at random instants. It returns both
// admitted amounts.
func underUse(t *testing.T, load float64, n, seconds int) (one, split int) {
	clock := storetest.NewClock()
	r := rand.New(testseed.PCG(20260101, uint64(n)))
	shared := shards.New(storetest.NewModel(clock.Now), r.IntN)
	c := store.Charge{Key: "one", Limit: tokens(t, 100, bucket.PerSecond(100*bucket.Token)), Cost: bucket.Token}
	sharded := c
	sharded.Key, sharded.Shards = "split", n
	end := clock.Now() + bucket.Instant(seconds)*1e6
	for clock.Now() < end {
		clock.Advance(int64(r.ExpFloat64() * 1e6 / load))
		for i, charge := range []store.Charge{c, sharded} {
			if _, allowed, err := shared.Take(t.Context(), nil, []store.Charge{charge}, mete.Mode{}); err != nil {
				t.Fatal(err)
			} else if allowed && i == 0 {
				one++
			} else if allowed {
				split++
			}
		}
	}
	return one, split
}

// TestSharded_UnderUse compares the admissions of shards with one bucket of capacity 100 and 100/s. Each time
// the limit is used up, shards may lose (1 − 1/n) of the capacity. Here the total loss is less than that.
func TestSharded_UnderUse(t *testing.T) {
	const seconds = 30
	for _, shards := range []int{2, 10, 20} {
		for _, load := range []float64{80, 100, 120, 300} {
			one, split := underUse(t, load, shards, seconds)
			t.Logf("%d shards at %v/s for %d s: %d of %d, %d fewer", shards, load, seconds, split, one, one-split)
			if most := 100 - 100/shards + 1; split > one || one-split > most {
				t.Errorf("%d shards at %v/s: admitted %d, one bucket %d; want at most %d fewer", shards, load, split, one, most)
			}
		}
	}
}

func BenchmarkSharded(b *testing.B) {
	clock := storetest.NewClock()
	shared := shards.New(storetest.NewModel(clock.Now), rand.IntN)
	l, err := bucket.NewLimit(1e9*bucket.Token, bucket.PerSecond(bucket.Token))
	if err != nil {
		b.Fatal(err)
	}
	for _, shards := range []int{0, 10} {
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			charges := []store.Charge{{Key: "k", Limit: l, Cost: 1, Shards: shards}}
			var snaps []bucket.Snapshot
			b.ReportAllocs()
			for b.Loop() {
				snaps, _, _ = shared.Take(b.Context(), snaps[:0], charges, mete.Mode{})
			}
		})
	}
}
