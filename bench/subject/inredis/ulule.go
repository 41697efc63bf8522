// SPDX-License-Identifier: Apache-2.0

package inredis

import (
	"context"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/metehq/mete/bench/subject"
)

func newUlule(addr string, q subject.Quota) (Limiter, error) {
	client, closeClient := newGoRedis(addr)
	store, err := redis.NewStore(client)
	if err != nil {
		closeClient()
		return Limiter{}, err
	}
	counter := limiter.New(store, limiter.Rate{Period: window, Limit: int64(q.Capacity)})
	take := func(key string) (bool, error) {
		state, err := counter.Get(context.Background(), key)
		return !state.Reached, err
	}
	return Limiter{Caller: one(take), Close: closeClient}, nil
}
