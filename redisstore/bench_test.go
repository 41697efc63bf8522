// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func benchKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("user:%011d", i)
	}
	return keys
}

// ample is a limit that always admits.
func ample(b *testing.B) bucket.Limit {
	l, err := bucket.NewLimit(1e9*bucket.Token, bucket.Rate{Tokens: 1e6 * bucket.Token, Per: time.Second})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// BenchmarkTake measures takes for different numbers of keys, buckets per take, and concurrent callers.
func BenchmarkTake(b *testing.B) {
	client, l := connect(b, proctest.StartRedis(b).Addr), ample(b)
	for _, n := range []int{1, 10_000} {
		for _, buckets := range []int{1, 3} {
			for _, callers := range []int{1, 16, 64, 256} {
				b.Run(fmt.Sprintf("keys=%d/buckets=%d/callers=%d", n, buckets, callers), func(b *testing.B) {
					takeBy(b, open(b, client, redisstore.Config{}), callers, benchKeys(n+2), buckets, l, false)
				})
			}
		}
	}
}

// BenchmarkTakeLeased measures takes from a hot bucket with leases.
func BenchmarkTakeLeased(b *testing.B) {
	client, l := connect(b, proctest.StartRedis(b).Addr), ample(b)
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			takeBy(b, open(b, client, redisstore.Config{}), callers, benchKeys(1), 1, l, true)
		})
	}
}

func takeBy(b *testing.B, s *redisstore.Store, callers int, keys []string, buckets int, l bucket.Limit, leased bool) {
	ctx := context.Background() // never canceled
	taker := func() func() {
		charges, snaps := make([]store.Charge, buckets), make([]bucket.Snapshot, 0, buckets)
		return func() {
			first := rand.IntN(len(keys) - buckets + 1)
			for i := range charges {
				charges[i] = store.Charge{Key: keys[first+i], Limit: l, Cost: bucket.Token, Leased: leased}
			}
			if _, allowed, err := s.Take(ctx, snaps, charges, mete.Mode{}); err != nil || !allowed {
				b.Error(allowed, err)
			}
		}
	}
	b.ReportAllocs()
	if callers == 1 {
		for take := taker(); b.Loop(); {
			take()
		}
		return
	}
	b.SetParallelism((callers + 1) / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for take := taker(); pb.Next(); {
			take()
		}
	})
}

// BenchmarkHold compares a hold and its settlement with a take.
func BenchmarkHold(b *testing.B) {
	s := open(b, connect(b, proctest.StartRedis(b).Addr), redisstore.Config{})
	storetest.BenchmarkHolds(b, func() mete.Store { return s })
}

// BenchmarkCalendars compares calendar windows with fixed windows.
func BenchmarkCalendars(b *testing.B) {
	s := open(b, connect(b, proctest.StartRedis(b).Addr), redisstore.Config{})
	storetest.BenchmarkCalendars(b, func() mete.Store { return s })
}

// BenchmarkReservations compares requests that are settled by their response with takes.
func BenchmarkReservations(b *testing.B) {
	testkit.BenchmarkReservations(b, open(b, connect(b, proctest.StartRedis(b).Addr), redisstore.Config{}))
}
