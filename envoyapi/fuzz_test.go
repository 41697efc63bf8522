// SPDX-License-Identifier: Apache-2.0

package envoyapi_test

import (
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/metehq/mete/envoyapi"
)

// Any message gets a complete answer or InvalidArgument.
func FuzzRateLimit(f *testing.F) {
	negative := describe("user", "a")
	negative.IsNegativeHits = true
	for _, req := range []*ratelimitv3.RateLimitRequest{
		{}, request(), request(describe("user", "a", "user", "b", "user#2", "c")), request(negative, describe()),
		request(limited(describe("k", "v"), 1<<31, 99, 0)), request(limited(withHits(describe("k", "v"), 1<<63), 0, 6, 1<<31)),
	} {
		data, err := proto.Marshal(req)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	lim, _, _, _ := newLimiter(f, rules)
	service, err := envoyapi.NewRateLimit(lim, envoyapi.RateLimitConfig{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		req := &ratelimitv3.RateLimitRequest{}
		if proto.Unmarshal(data, req) != nil {
			return
		}
		got, err := service.ShouldRateLimit(t.Context(), req)
		if err != nil {
			if status.Code(err) != codes.InvalidArgument {
				t.Fatal(err)
			}
			return
		}
		if got.OverallCode == 0 || len(got.Statuses) != len(req.Descriptors) {
			t.Fatalf("%v for %v", got, req)
		}
		for _, s := range got.Statuses {
			if s.GetCode() == 0 || got.OverallCode == ok && s.GetCode() != ok {
				t.Fatalf("%v for %v", got, req)
			}
		}
		if _, err := proto.Marshal(got); err != nil {
			t.Fatal(err)
		}
	})
}
