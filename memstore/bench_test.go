// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/memstore"
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

func mustLimit(tb testing.TB, capacity, rate bucket.Tokens) bucket.Limit {
	tb.Helper()
	l, err := bucket.NewLimit(capacity, bucket.PerSecond(rate))
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func mustNew(tb testing.TB, c memstore.Config) *memstore.Store {
	tb.Helper()
	s, err := memstore.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func BenchmarkTake(b *testing.B) {
	generous := mustLimit(b, 1_000_000_000*bucket.Token, 1000*bucket.Token)
	stingy := mustLimit(b, bucket.Token, bucket.Token/1000)
	million := benchKeys(1_000_000)
	zipf := rand.NewZipf(rand.New(testseed.PCG(1, 2)), 1.1, 1, 999_999)
	ranks := make([]string, 1<<20)
	for i := range ranks {
		ranks[i] = million[zipf.Uint64()]
	}
	shuffled := make([]string, 1<<20)
	for i := range shuffled {
		shuffled[i] = million[rand.IntN(100_000)]
	}
	for _, bc := range []struct {
		name  string
		keys  []string
		limit bucket.Limit
	}{
		{"hot/allow", million[:1], generous},
		{"hot/deny", million[:1], stingy},
		{"100k", shuffled, generous},
		{"zipf", ranks, generous},
	} {
		b.Run(bc.name, func(b *testing.B) {
			s := mustNew(b, memstore.Config{MaxKeys: 2 << 20})
			for _, k := range bc.keys {
				s.Take(context.Background(), nil, []store.Charge{{Key: k, Limit: bc.limit, Cost: bucket.Token}}, mete.Mode{})
			}
			ctx, mask := context.Background(), len(bc.keys)-1
			b.Run("serial", func(b *testing.B) {
				charges := []store.Charge{{Limit: bc.limit, Cost: bucket.Token}}
				var dst []bucket.Snapshot
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					charges[0].Key = bc.keys[i&mask]
					i++
					dst, _, _ = s.Take(ctx, dst[:0], charges, mete.Mode{})
				}
			})
			b.Run("parallel", func(b *testing.B) {
				var start atomic.Int64
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					charges := []store.Charge{{Limit: bc.limit, Cost: bucket.Token}}
					var dst []bucket.Snapshot
					i := int(start.Add(100_003))
					for pb.Next() {
						charges[0].Key = bc.keys[i&mask]
						i++
						dst, _, _ = s.Take(ctx, dst[:0], charges, mete.Mode{})
					}
				})
			})
		})
	}
}

// BenchmarkTakeOne is BenchmarkTake's hot key with TakeOne.
func BenchmarkTakeOne(b *testing.B) {
	generous, stingy := mustLimit(b, 1_000_000_000*bucket.Token, 1000*bucket.Token), mustLimit(b, bucket.Token, 1)
	for name, limit := range map[string]*bucket.Limit{"allow": &generous, "deny": &stingy} {
		s := mustNew(b, memstore.Config{})
		b.Run(name+"/serial", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.TakeOne("user:00000000000", limit, bucket.Token)
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					s.TakeOne("user:00000000000", limit, bucket.Token)
				}
			})
		})
	}
}

// BenchmarkTakeNew takes from a new key in each call.
func BenchmarkTakeNew(b *testing.B) {
	limit := mustLimit(b, 1000*bucket.Token, bucket.Token)
	keys := benchKeys(1_000_000)
	charges := []store.Charge{{Limit: limit, Cost: bucket.Token}}
	var dst []bucket.Snapshot
	s, i := mustNew(b, memstore.Config{MaxKeys: 2 << 20}), 0
	b.ReportAllocs()
	for b.Loop() {
		if i == len(keys) {
			b.StopTimer()
			s, i = mustNew(b, memstore.Config{MaxKeys: 2 << 20}), 0
			b.StartTimer()
		}
		charges[0].Key = keys[i]
		i++
		dst, _, _ = s.Take(context.Background(), dst[:0], charges, mete.Mode{})
	}
}

func BenchmarkTakeThree(b *testing.B) {
	limit := mustLimit(b, 1_000_000_000*bucket.Token, 1_000_000*bucket.Token)
	s := mustNew(b, memstore.Config{})
	charges := []store.Charge{{Key: "a", Limit: limit, Cost: 1}, {Key: "b", Limit: limit, Cost: 1}, {Key: "c", Limit: limit, Cost: 1}}
	var dst []bucket.Snapshot
	b.ReportAllocs()
	for b.Loop() {
		dst, _, _ = s.Take(context.Background(), dst[:0], charges, mete.Mode{})
	}
}

// BenchmarkAlgorithms takes from one hot bucket of each algorithm.
func BenchmarkAlgorithms(b *testing.B) {
	plenty := bucket.Rate{Tokens: 2_000_000_000 * bucket.Token, Per: time.Second}
	for _, bc := range []struct {
		name string
		spec bucket.Spec
	}{
		{"continuous", bucket.Spec{Capacity: plenty.Tokens, Rate: plenty}},
		{"stepped", bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: plenty.Tokens, Rate: plenty}},
		{"window", bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: plenty}},
		{"leaky", bucket.Spec{Capacity: bucket.Token, Rate: plenty, Queue: plenty.Tokens}},
		{"log of 100", bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: 100 * bucket.Token, Per: time.Microsecond}}},
		{"log of 10000", bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: 10_000 * bucket.Token, Per: time.Millisecond}}},
	} {
		limit, _, err := bc.spec.Compile()
		if err != nil {
			b.Fatal(err)
		}
		s := mustNew(b, memstore.Config{})
		b.Run(bc.name+"/serial", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.TakeOne("user:00000000000", &limit, bucket.Token)
			}
		})
		b.Run(bc.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					s.TakeOne("user:00000000000", &limit, bucket.Token)
				}
			})
		})
	}
}

// BenchmarkTakeByID takes under new, admitted and denied IDs, and for comparison with other operations under
// the shard's mutex.
func BenchmarkTakeByID(b *testing.B) {
	limit, empty := mustLimit(b, 1_000_000_000*bucket.Token, 1_000_000*bucket.Token), mustLimit(b, bucket.Token, 1)
	ids := benchKeys(1 << 20)
	for _, bc := range []struct {
		name  string
		limit bucket.Limit
		mode  func(i int) mete.Mode
	}{
		{"new", limit, func(i int) mete.Mode { return mete.Mode{ID: ids[i&(len(ids)-1)]} }},
		{"again", limit, func(int) mete.Mode { return mete.Mode{ID: "7f3a"} }},
		{"denied", empty, func(i int) mete.Mode { return mete.Mode{ID: ids[i&(len(ids)-1)]} }},
		{"none, up to", limit, func(int) mete.Mode { return mete.Mode{UpTo: true} }},
		{"none, dry run", limit, func(int) mete.Mode { return mete.Mode{DryRun: true} }},
	} {
		b.Run(bc.name, func(b *testing.B) {
			s := mustNew(b, memstore.Config{})
			charges := []store.Charge{{Key: "k", Limit: bc.limit, Cost: bucket.Token}}
			var dst []bucket.Snapshot
			dst, _, _ = s.Take(context.Background(), dst[:0], charges, mete.Mode{})
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				dst, _, _ = s.Take(context.Background(), dst[:0], charges, bc.mode(i))
				i++
			}
		})
	}
}

// BenchmarkAwait takes and cancels, with a history and for comparison without. Some takes before keep the bucket from being full.
func BenchmarkAwait(b *testing.B) {
	limit := mustLimit(b, 1_000_000_000*bucket.Token, bucket.Token)
	for name, await := range map[string]time.Duration{"await": time.Second, "none": 0} {
		b.Run(name, func(b *testing.B) {
			s := mustNew(b, memstore.Config{})
			charges := []store.Charge{{Key: "k", Limit: limit, Cost: bucket.Token, Await: await}}
			var dst []bucket.Snapshot
			for range 100 {
				dst, _, _ = s.Take(context.Background(), dst[:0], charges, mete.Mode{})
			}
			refunds := []mete.Refund{{Charge: charges[0]}}
			b.ReportAllocs()
			for b.Loop() {
				dst, _, _ = s.Take(context.Background(), dst[:0], charges, mete.Mode{})
				refunds[0].Taken = dst[0].Taken()
				if err := s.Refund(context.Background(), refunds, ""); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+", parallel", func(b *testing.B) {
			s := mustNew(b, memstore.Config{})
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				charges := []store.Charge{{Key: "k", Limit: limit, Cost: bucket.Token, Await: await}}
				refunds := []mete.Refund{{Charge: charges[0]}}
				var dst []bucket.Snapshot
				for pb.Next() {
					dst, _, _ = s.Take(context.Background(), dst[:0], charges, mete.Mode{})
					refunds[0].Taken = dst[0].Taken()
					if err := s.Refund(context.Background(), refunds, ""); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkHold compares a hold and its settlement with a take.
func BenchmarkHold(b *testing.B) {
	storetest.BenchmarkHolds(b, func() mete.Store { return mustNew(b, memstore.Config{}) })
}

// BenchmarkCalendars compares calendar windows with fixed windows.
func BenchmarkCalendars(b *testing.B) {
	storetest.BenchmarkCalendars(b, func() mete.Store { return mustNew(b, memstore.Config{}) })
}

// BenchmarkHoldSettle holds and settles, and for comparison only holds.
func BenchmarkHoldSettle(b *testing.B) {
	limit := mustLimit(b, 1_000_000_000*bucket.Token, 1_000_000*bucket.Token)
	ids := benchKeys(bucket.MaxHolds)
	for i := range ids {
		ids[i] = strings.Replace(ids[i], ":", "0", 1)
	}
	for name, settle := range map[string]bool{"settle": true, "hold": false} {
		b.Run(name, func(b *testing.B) {
			charges := []store.Charge{{Key: "k", Limit: limit, Cost: 2 * bucket.Token}}
			hold := store.Hold{TTL: time.Minute, Terms: make([]store.Terms, 1)}
			var s *memstore.Store
			var dst []bucket.Snapshot
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%len(ids) == 0 {
					b.StopTimer()
					s = mustNew(b, memstore.Config{})
					b.StartTimer()
				}
				var err error
				hold.ID = ids[i%len(ids)]
				if dst, _, err = s.Hold(context.Background(), dst[:0], charges, mete.Mode{}, hold); err != nil {
					b.Fatal(err)
				}
				if settle {
					_, _ = s.Settle(context.Background(), hold.ID, bucket.Token)
				}
			}
		})
	}
}

// BenchmarkReservations compares requests that are settled by their response with takes.
func BenchmarkReservations(b *testing.B) {
	testkit.BenchmarkReservations(b, mustNew(b, memstore.Config{}))
}
