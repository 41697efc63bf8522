// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

// throttledChange is like redisRateChange, with a second limiter on the same store.
func throttledChange(ctx context.Context, _ string) error {
	store, err := memstore.NewCtx(1000)
	if err != nil {
		return err
	}
	perMinute, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerMin(10), MaxBurst: 9})
	if err != nil {
		return err
	}
	perSecond, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(10), MaxBurst: 9})
	if err != nil {
		return err
	}
	if _, _, err := perMinute.RateLimitCtx(ctx, "k", 10); err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // 20 tokens at the new rate
	limited, result, err := perSecond.RateLimitCtx(ctx, "k", 1)
	fmt.Printf("2 s later with 10 per second: limited=%t retry after %s\n", limited, result.RetryAfter.Round(time.Millisecond))
	return err
}
