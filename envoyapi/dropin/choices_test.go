// SPDX-License-Identifier: Apache-2.0

package dropin_test

import (
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/metehq/mete/envoyapi/dropin"
)

// Clients choose limits of their own, here more than any table of limits holds. Each is still enforced.
func TestCallerLimit_CannotExhaustTables(t *testing.T) {
	choices := 1<<20 + 1
	if testing.Short() {
		choices = 1<<17 + 1
	}
	for _, tc := range []struct {
		name    string
		options dropin.Options
		choose  func(*commonv3.RateLimitDescriptor_RateLimitOverride, int)
	}{
		{"requests", dropin.Options{}, func(l *commonv3.RateLimitDescriptor_RateLimitOverride, i int) {
			l.RequestsPerUnit = uint32(i + 2)
		}},
		{"windows", dropin.Options{}, func(l *commonv3.RateLimitDescriptor_RateLimitOverride, i int) {
			l.UnitMultiplier = wrapperspb.UInt32(uint32(i + 1))
		}},
		{"buckets", dropin.Options{Algorithm: dropin.TokenBucket}, func(l *commonv3.RateLimitDescriptor_RateLimitOverride, i int) {
			l.RequestsPerUnit = uint32(i + 2)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, "domain: shop", tc.options)
			ask := func(i int, hits uint64) uint32 {
				d := withHits(withLimit(entries("k=v"), 10, 1), hits)
				tc.choose(d.Limit, i)
				resp := r.ask(d)
				if want := hits > 0 && hits > uint64(d.Limit.RequestsPerUnit); (resp.OverallCode == over) != want {
					t.Fatalf("choice %d: %v", i, resp)
				}
				return resp.Statuses[0].LimitRemaining
			}
			for i := range choices {
				if tc.name == "requests" { // all choices share the counter of the descriptor
					ask(i, 0)
				} else {
					ask(i, 2)
				}
			}
			first := ask(choices, 1)
			if second := ask(choices, 1); second+1 != first {
				t.Errorf("%d requests left, and then %d", first, second)
			}
		})
	}
}
