// SPDX-License-Identifier: Apache-2.0

package envoyapi_test

import (
	"context"
	"fmt"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/metehq/mete/envoyapi"
)

// An echo answers every call with the same message: the cost of gRPC alone.
type echo struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
	answer *ratelimitv3.RateLimitResponse
}

func (e *echo) ShouldRateLimit(context.Context, *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	return e.answer, nil
}

const plenty = `{"rules": [{"name": "user", "limit_keys": ["descriptor:user"], "algorithm_config": {"rate": "1000000/1s", "burst": 1000000000}}]}`

func newService(tb testing.TB, config envoyapi.RateLimitConfig) *envoyapi.RateLimit {
	tb.Helper()
	lim, _, _, _ := newLimiter(tb, plenty)
	service, err := envoyapi.NewRateLimit(lim, config)
	if err != nil {
		tb.Fatal(err)
	}
	return service
}

func TestRateLimit_Allocations(t *testing.T) {
	if raceEnabled {
		return // the race detector allocates, and empties pools
	}
	for _, c := range []struct {
		descriptors int
		omit        bool
		want        float64
	}{{1, true, 1}, {1, false, 3}, {2, true, 2}, {2, false, 4}} {
		service := newService(t, envoyapi.RateLimitConfig{OmitFields: c.omit})
		req := request()
		for i := range c.descriptors {
			req.Descriptors = append(req.Descriptors, describe("user", fmt.Sprint(i)))
		}
		ctx := context.Background()
		if n := testing.AllocsPerRun(2000, func() {
			if _, err := service.ShouldRateLimit(ctx, req); err != nil {
				t.Fatal(err)
			}
		}); n > c.want {
			t.Errorf("%d descriptors, without fields %v: %v allocations, want at most %v", c.descriptors, c.omit, n, c.want)
		}
	}
}

func BenchmarkRateLimit(b *testing.B) {
	for _, omit := range []bool{true, false} {
		service, req := newService(b, envoyapi.RateLimitConfig{OmitFields: omit}), request(describe("user", "alice"))
		ctx := context.Background()
		b.Run(fmt.Sprintf("omit=%v/serial", omit), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := service.ShouldRateLimit(ctx, req); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("omit=%v/parallel", omit), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := service.ShouldRateLimit(ctx, req); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkUnary compares calls over gRPC with an echo of the same messages.
func BenchmarkUnary(b *testing.B) {
	service, req := newService(b, envoyapi.RateLimitConfig{}), request(describe("user", "alice"))
	answer, err := service.ShouldRateLimit(context.Background(), req)
	if err != nil {
		b.Fatal(err)
	}
	for name, server := range map[string]ratelimitv3.RateLimitServiceServer{"mete": service, "echo": &echo{answer: proto.CloneOf(answer)}} {
		client := serve(b, server)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := client.ShouldRateLimit(context.Background(), req); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
