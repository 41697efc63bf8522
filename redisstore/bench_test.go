// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
)

func benchKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("user:%011d", i)
	}
	return keys
}

func BenchmarkTake(b *testing.B) {
	client := connect(b, proctest.StartRedis(b).Addr)
	l, err := bucket.NewLimit(1e9*bucket.Token, bucket.Rate{Tokens: 1e6 * bucket.Token, Per: time.Second})
	if err != nil {
		b.Fatal(err)
	}
	for _, inFlight := range []int{1, 2, 0} {
		for _, n := range []int{1, 10_000} {
			for _, callers := range []int{1, 16, 64, 256} {
				b.Run(fmt.Sprintf("keys=%d/callers=%d/inflight=%d", n, callers, inFlight), func(b *testing.B) {
					s := open(b, client, redisstore.Config{MaxInFlight: inFlight})
					keys := benchKeys(n)
					b.ReportAllocs()
					b.SetParallelism((callers + 1) / 2)
					if callers == 1 {
						b.ResetTimer()
						for range b.N {
							benchTake(b, s, keys, l)
						}
						return
					}
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							benchTake(b, s, keys, l)
						}
					})
				})
			}
		}
	}
}

func benchTake(b *testing.B, s *redisstore.Store, keys []string, l bucket.Limit) {
	charges := [1]mete.Charge{{Key: keys[rand.IntN(len(keys))], Limit: l, Cost: bucket.Token}}
	var snaps [1]bucket.Snapshot
	if _, allowed, err := s.Take(b.Context(), snaps[:0], charges[:], mete.Mode{}); err != nil || !allowed {
		b.Fatal(allowed, err)
	}
}
