// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"context"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

type throttledLimiter struct{ gcra *throttled.GCRARateLimiterCtx }

// newThrottled uses the store without a bound on keys, because the bounded one has a least-recently-used list
// under a mutex and is slower.
func newThrottled(q Quota) (Limiter, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return nil, err
	}
	gcra, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate:  throttled.PerDuration(1, q.Every),
		MaxBurst: q.Capacity - 1,
	})
	if err != nil {
		return nil, err
	}
	// With the default, 10, calls for a contended key fail.
	gcra.SetMaxCASAttemptsLimit(1_000_000)
	return throttledLimiter{gcra}, nil
}

func (l throttledLimiter) Take(key string) bool {
	limited, _, err := l.gcra.RateLimitCtx(context.Background(), key, 1)
	return !limited && err == nil
}

func (throttledLimiter) Close() {}
