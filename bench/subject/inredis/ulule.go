// SPDX-License-Identifier: Apache-2.0

package inredis

import (
	"context"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
)

func newUlule(addr string, q subject.Quota) (remote.Limiter, error) {
	client, closeClient := newGoRedis(addr)
	store, err := redis.NewStore(client)
	if err != nil {
		closeClient()
		return remote.Limiter{}, err
	}
	counter := limiter.New(store, limiter.Rate{Period: window, Limit: int64(q.Capacity)})
	take := func(key string) (bool, error) {
		state, err := counter.Get(context.Background(), key)
		return !state.Reached, err
	}
	return remote.Limiter{Caller: remote.FromSingle(take), Close: closeClient}, nil
}
