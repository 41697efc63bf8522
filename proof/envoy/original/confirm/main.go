// SPDX-License-Identifier: Apache-2.0

// Command confirm repeats a finding about envoyproxy/ratelimit: the Redis key of a counter contains the second of the
// process's clock. Processes whose clocks differ, and a process whose clock steps back, count from 0.
package main

import (
	"fmt"
	"time"

	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	servicepb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/ratelimit/src/config"
	"github.com/envoyproxy/ratelimit/src/limiter"
)

func main() {
	keys := limiter.NewCacheKeyGenerator("")
	client := &ratelimitpb.RateLimitDescriptor{Entries: []*ratelimitpb.RateLimitDescriptor_Entry{{Key: "client", Value: "k"}}}
	limit := &config.RateLimit{Limit: &servicepb.RateLimitResponse_RateLimit{RequestsPerUnit: 10, Unit: servicepb.RateLimitResponse_RateLimit_SECOND}}
	now := time.Now().Unix()
	for _, shift := range []int64{0, 30, -30} {
		fmt.Printf("clock %+3d s: the counter is %s\n", shift, keys.GenerateCacheKey("bench", client, limit, now+shift).Key)
	}
}
