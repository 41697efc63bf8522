// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	throttledmemory "github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/metehq/mete/bench/exactness/wire"
)

// dial returns a client with go-redis's default settings.
func dial(s wire.Setup) redis.UniversalClient {
	if len(s.Sentinels) > 0 {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: s.Master, SentinelAddrs: s.Sentinels})
	}
	return redis.NewClient(&redis.Options{Addr: s.Redis})
}

func isShared(s wire.Setup) bool { return s.Redis != "" || len(s.Sentinels) > 0 }

func newThrottled(s wire.Setup) (wire.Limiter, error) {
	var store throttled.GCRAStoreCtx
	var err error
	if isShared(s) {
		store, err = goredisstore.NewCtx(dial(s), "throttled:")
	} else {
		store, err = throttledmemory.NewCtx(s.MaxKeys)
	}
	if err != nil {
		return nil, err
	}
	limiters := func(limits []wire.Limit) (all []*throttled.GCRARateLimiterCtx, err error) {
		for _, l := range limits {
			quota := throttled.RateQuota{MaxRate: throttled.PerDuration(l.Capacity, l.Period), MaxBurst: l.Capacity - 1}
			gcra, err := throttled.NewGCRARateLimiterCtx(store, quota)
			if err != nil {
				return nil, err
			}
			all = append(all, gcra)
		}
		return all, nil
	}
	var current swapped[[]*throttled.GCRARateLimiterCtx]
	change := func(limits []wire.Limit) error {
		all, err := limiters(limits)
		current.set(all)
		return err
	}
	take := func(ctx context.Context, limit int, key string) (bool, time.Duration, error) {
		limited, result, err := current.get()[limit].RateLimitCtx(ctx, fmt.Sprint(limit, ":", key), 1)
		return !limited && err == nil, result.RetryAfter, err
	}
	return chain{take, change}, change(s.Limits)
}

func newUlule(s wire.Setup) (wire.Limiter, error) {
	store := ululememory.NewStore()
	if isShared(s) {
		var err error
		if store, err = ululeredis.NewStore(dial(s)); err != nil {
			return nil, err
		}
	}
	var current swapped[[]*limiter.Limiter]
	change := func(limits []wire.Limit) error {
		var all []*limiter.Limiter
		for _, l := range limits {
			all = append(all, limiter.New(store, limiter.Rate{Period: l.Period, Limit: int64(l.Capacity)}))
		}
		current.set(all)
		return nil
	}
	take := func(ctx context.Context, limit int, key string) (bool, time.Duration, error) {
		state, err := current.get()[limit].Get(ctx, fmt.Sprint(limit, ":", key))
		return !state.Reached && err == nil, time.Until(time.Unix(state.Reset, 0)), err
	}
	return chain{take, change}, change(s.Limits)
}

func newRedisRate(s wire.Setup) (wire.Limiter, error) {
	gcra := redis_rate.NewLimiter(dial(s))
	current := swapped[[]wire.Limit]{value: s.Limits}
	take := func(ctx context.Context, limit int, key string) (bool, time.Duration, error) {
		l := current.get()[limit]
		result, err := gcra.Allow(ctx, fmt.Sprint(limit, ":", key), redis_rate.Limit{Rate: l.Capacity, Period: l.Period, Burst: l.Capacity})
		if err != nil {
			return false, wire.NoRetry, err
		}
		return result.Allowed > 0, result.RetryAfter, nil
	}
	return chain{take, func(limits []wire.Limit) error { current.set(limits); return nil }}, nil
}
