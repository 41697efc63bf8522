// SPDX-License-Identifier: Apache-2.0

package inredis

import (
	"context"

	"github.com/go-redis/redis_rate/v10"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
)

func newRedisRate(addr string, q subject.Quota) (remote.Limiter, error) {
	client, closeClient := newGoRedis(addr)
	limiter := redis_rate.NewLimiter(client)
	limit := redis_rate.Limit{Rate: 1, Period: q.Every, Burst: q.Capacity}
	take := func(key string) (bool, error) {
		result, err := limiter.Allow(context.Background(), key, limit)
		if err != nil {
			return false, err
		}
		return result.Allowed > 0, nil
	}
	return remote.Limiter{Caller: remote.FromSingle(take), Close: closeClient}, nil
}
