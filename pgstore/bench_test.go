// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// BenchmarkTake measures takes of one token for different numbers of callers and buckets, which are nearly always
// admitted. It includes the round trip to a local server.
func BenchmarkTake(b *testing.B) {
	pool := newPool(b)
	schema := migrated(b, pool)
	limit, err := bucket.NewLimit(1_000_000*bucket.Token, bucket.PerSecond(100_000*bucket.Token))
	if err != nil {
		b.Fatal(err)
	}
	for _, callers := range []int{1, 64} {
		for _, keys := range []int{1, 10_000} {
			for _, limits := range []int{1, 3} {
				b.Run(fmt.Sprintf("callers=%d/keys=%d/limits=%d", callers, keys, limits), func(b *testing.B) {
					s := open(b, pool, pgstore.Config{Schema: schema, Prefix: fmt.Sprint(limits, ":"), SweepEvery: -1})
					benchmark(b, s, callers, func(charges []store.Charge) []store.Charge {
						n := rand.IntN(keys)
						for i := range limits {
							key := fmt.Sprintf("%d|user:%06d", i, n/max(1, i*1000))
							charges = append(charges, store.Charge{Key: key, Limit: limit, Cost: bucket.Token})
						}
						return charges
					})
				})
			}
		}
	}
}

func benchmark(b *testing.B, s mete.Store, callers int, next func([]store.Charge) []store.Charge) {
	ctx := context.Background()
	b.ReportAllocs()
	b.ResetTimer()
	start := time.Now()
	work := make(chan int, callers)
	for i := range callers {
		n := b.N / callers
		if i < b.N%callers {
			n++
		}
		work <- n
	}
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			var charges []store.Charge
			var snaps []bucket.Snapshot
			for range <-work {
				charges = next(charges[:0])
				var err error
				if snaps, _, err = s.Take(ctx, snaps[:0], charges, mete.Mode{}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "takes/s")
}

// BenchmarkHold compares a hold and its settlement with a take.
func BenchmarkHold(b *testing.B) {
	pool := newPool(b)
	s := open(b, pool, pgstore.Config{Schema: migrated(b, pool)})
	storetest.BenchmarkHolds(b, func() mete.Store { return s })
}

// BenchmarkCalendars compares calendar windows with fixed windows.
func BenchmarkCalendars(b *testing.B) {
	pool := newPool(b)
	s := open(b, pool, pgstore.Config{Schema: migrated(b, pool)})
	storetest.BenchmarkCalendars(b, func() mete.Store { return s })
}

// BenchmarkReservations compares requests that are settled by their response with takes.
func BenchmarkReservations(b *testing.B) {
	pool := newPool(b)
	testkit.BenchmarkReservations(b, open(b, pool, pgstore.Config{Schema: migrated(b, pool)}))
}
