// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/workload"
)

var scenarios = []struct {
	name  string
	quota subject.Quota
	keys  int
	calls func() workload.Keys
}{
	{"hot", subject.Allow, 1, func() workload.Keys { return workload.Each(1) }},
	{"deny", subject.Deny, 1, func() workload.Keys { return workload.Each(1) }},
	{"uniform", subject.Allow, 100_000, func() workload.Keys { return workload.Uniform(100_000, workload.UniformCalls) }},
	{"zipf", subject.Allow, 1_000_000, func() workload.Keys { return workload.Zipf(1_000_000, workload.ZipfCalls, 1.1) }},
}

// BenchmarkTake takes one token of a warm limiter, call after call.
func BenchmarkTake(b *testing.B) {
	each(b, func(b *testing.B, limiter subject.Limiter, calls workload.Keys) {
		i := 0
		for b.Loop() {
			limiter.Take(calls.At(i))
			if i++; i == calls.Len() {
				i = 0
			}
		}
	})
}

// BenchmarkTakeParallel runs on GOMAXPROCS goroutines. The time is wall time divided
// by all calls.
func BenchmarkTakeParallel(b *testing.B) {
	each(b, func(b *testing.B, limiter subject.Limiter, calls workload.Keys) {
		b.RunParallel(func(pb *testing.PB) {
			limiter, i := subject.For(limiter), 0
			for pb.Next() {
				limiter.Take(calls.At(i))
				if i++; i == calls.Len() {
					i = 0
				}
			}
		})
	})
}

// BenchmarkNewKey takes from a key that the limiter has not seen. Its figures
// depend on b.N, as the limiter grows: compare only equal ones, as with
// -benchtime 1000000x.
func BenchmarkNewKey(b *testing.B) {
	for _, s := range subject.All {
		b.Run(s.Name, func(b *testing.B) {
			limiter := open(b, s, subject.Allow)
			calls := workload.Each(b.N)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				limiter.Take(calls.At(i))
			}
		})
	}
}

// each runs a benchmark for every scenario and subject.
func each(b *testing.B, run func(*testing.B, subject.Limiter, workload.Keys)) {
	for _, sc := range scenarios {
		calls := sc.calls()
		for _, s := range subject.All {
			b.Run(sc.name+"/"+s.Name, func(b *testing.B) {
				limiter, known := open(b, s, sc.quota), workload.Each(sc.keys)
				for i := range known.Len() {
					limiter.Take(strings.Clone(known.At(i)))
				}
				b.ReportAllocs()
				b.ResetTimer()
				run(b, limiter, calls)
			})
		}
	}
}

func open(b *testing.B, s subject.Subject, quota subject.Quota) subject.Limiter {
	limiter, err := s.New(quota)
	if err != nil {
		b.Fatalf("New(%+v): %v", quota, err)
	}
	b.Cleanup(limiter.Close)
	return limiter
}
