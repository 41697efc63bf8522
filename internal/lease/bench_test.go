// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/internal/lease/leasetest"
)

// leased returns a Borrower that has leased enough of "hot" for any benchmark.
func leased(tb testing.TB) (*lease.Borrower, bucket.Limit) {
	tb.Helper()
	limit, err := bucket.NewLimit(1_000_000_000*bucket.Token, bucket.PerSecond(500_000_000*bucket.Token))
	if err != nil {
		tb.Fatal(err)
	}
	began := time.Now()
	bank := &leasetest.Bank{Now: func() bucket.Instant { return 1e15 + bucket.Instant(time.Since(began).Microseconds()) }}
	b, err := lease.New(lease.Config{Lender: bank, Node: "n", MinSlice: 10_000_000 * bucket.Token, Share: 1})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			tb.Log(err)
		}
	})
	for {
		if _, _, ok := b.Take("hot", &limit, bucket.Token); ok {
			return b, limit
		}
	}
}

// BenchmarkTake_Hit measures a take from a lease, including loans in the background.
func BenchmarkTake_Hit(b *testing.B) {
	borrower, limit := leased(b)
	missed := 0
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := borrower.Take("hot", &limit, bucket.Token); !ok {
			missed++
		}
	}
	report(b, borrower, missed)
}

func BenchmarkTake_HitParallel(b *testing.B) {
	borrower, limit := leased(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			borrower.Take("hot", &limit, bucket.Token)
		}
	})
	report(b, borrower, 0)
}

// BenchmarkTake_Cold measures a take from a bucket that is not leased.
func BenchmarkTake_Cold(b *testing.B) {
	borrower, limit := leased(b)
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("cold:%d", i)
	}
	limit2, err := bucket.NewLimit(10*bucket.Token, bucket.PerSecond(bucket.Token))
	if err != nil {
		b.Fatal(err)
	}
	for _, limits := range []struct {
		name  string
		limit *bucket.Limit
	}{{"leasable", &limit}, {"small", &limit2}} {
		b.Run(limits.name, func(b *testing.B) {
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				borrower.Take(keys[i%len(keys)], limits.limit, bucket.Token)
				i++
			}
		})
	}
}

func report(b *testing.B, borrower *lease.Borrower, missed int) {
	b.Helper()
	s := borrower.Stats()
	b.ReportMetric(float64(missed)/float64(b.N), "misses/op")
	b.ReportMetric(float64(s.Loans)/float64(b.N), "loans/op")
}
