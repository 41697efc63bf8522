// SPDX-License-Identifier: Apache-2.0

package inredis

import (
	"github.com/redis/rueidis"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
	"github.com/metehq/mete/redisstore"
)

// open returns a redisstore with its own client, and a function that closes both.
func open(addr string, q subject.Quota, leased bool) (*remote.Store, func(), error) {
	options, config, err := redisstore.ParseURL("redis://" + addr)
	if err != nil {
		return nil, nil, err
	}
	client, err := rueidis.NewClient(options)
	if err != nil {
		return nil, nil, err
	}
	store, err := redisstore.New(client, config)
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	closeBoth := func() {
		_ = store.Close()
		client.Close()
	}
	limited, err := remote.NewStore(store, q, leased)
	if err != nil {
		closeBoth()
	}
	return limited, closeBoth, err
}

func newMeteStore(leased bool) func(string, subject.Quota) (remote.Limiter, error) {
	return func(addr string, q subject.Quota) (remote.Limiter, error) {
		store, closeStore, err := open(addr, q, leased)
		if err != nil {
			return remote.Limiter{}, err
		}
		return remote.Limiter{Caller: store.StoreTakes(), Close: closeStore}, nil
	}
}

func newMeteLimiter(leased bool) func(string, subject.Quota) (remote.Limiter, error) {
	return func(addr string, q subject.Quota) (remote.Limiter, error) {
		store, closeStore, err := open(addr, q, leased)
		if err != nil {
			return remote.Limiter{}, err
		}
		caller, err := store.LimiterTakes()
		if err != nil {
			closeStore()
			return remote.Limiter{}, err
		}
		return remote.Limiter{Caller: caller, Close: closeStore}, nil
	}
}
