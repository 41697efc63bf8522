// SPDX-License-Identifier: Apache-2.0

package inredis

import (
	"context"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
)

func newThrottled(addr string, q subject.Quota) (remote.Limiter, error) {
	client, closeClient := newGoRedis(addr)
	store, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		closeClient()
		return remote.Limiter{}, err
	}
	gcra, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate:  throttled.PerDuration(1, q.Every),
		MaxBurst: q.Capacity - 1,
	})
	if err != nil {
		closeClient()
		return remote.Limiter{}, err
	}
	// With the default, 10, takes of a contended key fail.
	gcra.SetMaxCASAttemptsLimit(1_000_000)
	take := func(key string) (bool, error) {
		limited, _, err := gcra.RateLimitCtx(context.Background(), key, 1)
		return !limited, err
	}
	return remote.Limiter{Caller: remote.FromSingle(take), Close: closeClient}, nil
}
