// SPDX-License-Identifier: Apache-2.0

// Command mennanov runs mennanov/limiters for the comparison of exactness. It is a module of its own, because the
// library needs the clients of many stores. See package wire for its input and output.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/mennanov/limiters"
	"github.com/metehq/mete/bench/exactness/wire"
	"github.com/redis/go-redis/v9"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mennanov:", err)
		os.Exit(1)
	}
}

func run() error {
	setup, err := wire.ReadSetup()
	if err != nil {
		return err
	}
	version := ""
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == "github.com/mennanov/limiters" {
			version = dep.Version
		}
	}
	client := redis.UniversalClient(redis.NewClient(&redis.Options{Addr: setup.Redis}))
	if len(setup.Sentinels) > 0 {
		client = redis.NewFailoverClient(&redis.FailoverOptions{MasterName: setup.Master, SentinelAddrs: setup.Sentinels})
	}
	return wire.Serve(&limiter{client: client, limits: setup.Limits, byKey: map[string]*limiters.TokenBucket{}}, version, os.Stdin, os.Stdout)
}

// limiter has a token bucket for each key, with the lock in Redis that several processes need.
type limiter struct {
	client redis.UniversalClient

	mu     sync.Mutex
	limits []wire.Limit
	byKey  map[string]*limiters.TokenBucket
}

func (l *limiter) Take(ctx context.Context, keys []string) (bool, time.Duration, error) {
	return wire.Single(l.take).TakeEach(ctx, keys)
}

func (l *limiter) take(ctx context.Context, limit int, key string) (bool, time.Duration, error) {
	wait, err := l.bucket(fmt.Sprint(limit, ":", key), limit).Limit(ctx)
	if errors.Is(err, limiters.ErrLimitExhausted) {
		return false, wait, nil
	}
	return err == nil, wire.NoRetry, err
}

func (l *limiter) bucket(name string, limit int) *limiters.TokenBucket {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.byKey[name]
	if !ok {
		config := l.limits[limit]
		b = limiters.NewTokenBucket(int64(config.Capacity), config.Every(),
			limiters.NewLockRedis(goredis.NewPool(l.client), "lock:"+name),
			limiters.NewTokenBucketRedis(l.client, "bucket:"+name, config.Period, false),
			limiters.NewSystemClock(), limiters.NewStdLogger())
		l.byKey[name] = b
	}
	return b
}

func (l *limiter) Change(limits []wire.Limit) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits = limits
	clear(l.byKey)
	return nil
}
