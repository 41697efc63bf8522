// SPDX-License-Identifier: Apache-2.0

package dropin_test

import (
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/metehq/mete/envoyapi/dropin"
)

var benchmarks = []struct {
	name        string
	options     dropin.Options
	descriptors []*commonv3.RateLimitDescriptor
	allocations float64
}{
	{"one", dropin.Options{}, []*commonv3.RateLimitDescriptor{entries("tenant=t user=u")}, 4},
	{"wildcard", dropin.Options{}, []*commonv3.RateLimitDescriptor{entries("path=-x-y-z")}, 4},
	{"four", dropin.Options{}, []*commonv3.RateLimitDescriptor{entries("tenant=t user=u"), entries("user=bob"), entries("path=/a/b"), entries("none=n")}, 4},
	{"bucket", dropin.Options{Algorithm: dropin.TokenBucket}, []*commonv3.RateLimitDescriptor{entries("tenant=t user=u")}, 4},
	{"caller", dropin.Options{}, []*commonv3.RateLimitDescriptor{withLimit(entries("user=bob"), 10, 2)}, 6},
}

func BenchmarkShouldRateLimit(b *testing.B) {
	for _, bm := range benchmarks {
		b.Run(bm.name, func(b *testing.B) {
			r := newRig(b, matching, bm.options)
			req := &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: bm.descriptors}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := r.ShouldRateLimit(b.Context(), req); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// An answer needs memory for itself, its statuses and the keys of the counters.
func TestShouldRateLimit_Allocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, bm := range benchmarks {
		r := newRig(t, matching, bm.options)
		req := &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: bm.descriptors}
		got := testing.AllocsPerRun(500, func() {
			if _, err := r.ShouldRateLimit(t.Context(), req); err != nil {
				t.Error(err)
			}
		})
		if got > bm.allocations {
			t.Errorf("%s: %v allocations, want at most %v", bm.name, got, bm.allocations)
		}
	}
}
