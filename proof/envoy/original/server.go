// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand"
	"sync/atomic"

	"github.com/coocood/freecache"
	"github.com/envoyproxy/ratelimit/src/config"
	"github.com/envoyproxy/ratelimit/src/limiter"
	"github.com/envoyproxy/ratelimit/src/provider"
	"github.com/envoyproxy/ratelimit/src/redis"
	"github.com/envoyproxy/ratelimit/src/server"
	service "github.com/envoyproxy/ratelimit/src/service"
	"github.com/envoyproxy/ratelimit/src/settings"
	"github.com/envoyproxy/ratelimit/src/stats"
	"github.com/envoyproxy/ratelimit/src/utils"
	gostats "github.com/lyft/gostats"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc/health"
)

// A file is a configuration file.
type file struct{ Name, Text string }

// An original is the service of envoyproxy/ratelimit with a clock that tests set. Its methods must not run
// concurrently.
type original struct {
	now     atomic.Int64 // Unix seconds
	service service.RateLimitServiceServer
	store   gostats.Store
	counts  *counts
	updates chan provider.ConfigUpdateEvent
	stats   stats.Manager
}

// start returns a service that counts in the Redis at addr. It reads the same environment variables as the program.
func start(addr string) (*original, error) {
	logrus.SetOutput(io.Discard)
	s := settings.NewSettings()
	s.RedisSocketType, s.RedisUrl, s.RedisType = "tcp", addr, "SINGLE"

	counts := &counts{values: map[string]uint64{}}
	store := gostats.NewStore(counts, false)
	o := &original{store: store, counts: counts, updates: make(chan provider.ConfigUpdateEvent), stats: stats.NewStatManager(store, s)}
	host := &host{scope: store, health: server.NewHealthChecker(health.NewServer(), "ratelimit", false)}
	cache, err := connect(s, host, o, o.stats)
	if err != nil {
		return nil, err
	}
	o.service = service.NewService(cache, o, o.stats, host.health, o, s.GlobalShadowMode, true, false)
	return o, nil
}

// longExpiry keeps counters in Redis while the test's clock is behind the clock of Redis. Each window has keys of
// its own, so no counter is needed after its window.
const longExpiry = int64(1 << 31)

// connect creates the part that counts in Redis. Newer versions of the original want a context first.
func connect(s settings.Settings, host server.Server, clock utils.TimeSource, m stats.Manager) (limiter.RateLimitCache, error) {
	jitter := rand.New(longest{})
	switch create := any(redis.NewRateLimiterCacheImplFromSettings).(type) {
	case func(settings.Settings, *freecache.Cache, server.Server, utils.TimeSource, *rand.Rand, int64, stats.Manager) (limiter.RateLimitCache, io.Closer):
		cache, _ := create(s, nil, host, clock, jitter, longExpiry, m)
		return cache, nil
	case func(context.Context, settings.Settings, *freecache.Cache, server.Server, utils.TimeSource, *rand.Rand, int64, stats.Manager) (limiter.RateLimitCache, io.Closer):
		cache, _ := create(context.Background(), s, nil, host, clock, jitter, longExpiry, m)
		return cache, nil
	default:
		return nil, fmt.Errorf("original: unknown signature %T", create)
	}
}

// longest is a source of one number, so that the random part of every expiry is the longest one.
type longest struct{}

func (longest) Int63() int64 { return longExpiry - 1 }
func (longest) Seed(int64)   {}

// UnixNow implements the original's clock.
func (o *original) UnixNow() int64 { return o.now.Load() }

// load replaces the configuration. The original panics if a file is wrong. load returns that as an error, and the
// server keeps the configuration that it has.
func (o *original) load(merge bool, files ...file) (err error) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case config.RateLimitConfigError:
			err = cause
		default:
			err = fmt.Errorf("original: load: panic: %v", cause)
		}
	}()
	var parsed []config.RateLimitConfigToLoad
	for _, f := range files {
		parsed = append(parsed, config.RateLimitConfigToLoad{Name: f.Name, ConfigYaml: config.ConfigFileContentToYaml(f.Name, f.Text)})
	}
	o.service.SetConfig(loaded{config.NewRateLimitConfigImpl(parsed, o.stats, merge)}, false)
	return nil
}

// ConfigUpdateEvent and Stop implement the original's provider of configurations. It sends none: see load.
func (o *original) ConfigUpdateEvent() <-chan provider.ConfigUpdateEvent { return o.updates }
func (o *original) Stop()                                                {}

// loaded is an update with a configuration.
type loaded struct{ config config.RateLimitConfig }

func (l loaded) GetConfig() (config.RateLimitConfig, any) { return l.config, nil }

// host has the two methods of the original's server that its Redis client calls.
type host struct {
	server.Server
	scope  gostats.Scope
	health *server.HealthChecker
}

func (h *host) Scope() gostats.Scope                 { return h.scope }
func (h *host) HealthChecker() *server.HealthChecker { return h.health }
