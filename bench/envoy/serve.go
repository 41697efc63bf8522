// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"runtime/pprof"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/metehq/mete"
	"github.com/metehq/mete/envoyapi"
	"github.com/metehq/mete/envoyapi/dropin"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/redisstore"
)

// The kinds of services of the subcommand serve.
const (
	kindEcho   = "echo"
	kindPolicy = "policy"
	kindDropIn = "dropin"
)

// serve runs one of our servers until ctx ends: serve -kind KIND -addr HOST:PORT [-redis HOST:PORT] [-profile FILE].
func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	kind := flags.String("kind", "", "")
	addr := flags.String("addr", "", "")
	redis := flags.String("redis", "", "")
	profile := flags.String("profile", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	service, err := newService(ctx, *kind, *redis)
	if err != nil {
		return err
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(s, service)
	context.AfterFunc(ctx, s.Stop)
	return s.Serve(listener)
}

func newService(ctx context.Context, kind, redis string) (ratelimitv3.RateLimitServiceServer, error) {
	if kind == kindEcho {
		return echo{}, nil
	}
	limiter, err := newLimiter(ctx, kind, redis)
	if err != nil {
		return nil, err
	}
	switch kind {
	case kindPolicy:
		return envoyapi.NewRateLimit(limiter, envoyapi.RateLimitConfig{})
	case kindDropIn:
		s, err := dropin.NewService(limiter, dropin.Options{})
		if err != nil {
			return nil, err
		}
		config, err := dropin.Parse([]dropin.File{{Name: "config.yaml", Data: []byte(configText)}}, dropin.ConfigOptions{})
		if err != nil {
			return nil, err
		}
		s.SetConfig(config)
		return s, nil
	default:
		return nil, fmt.Errorf("unknown kind %q", kind)
	}
}

// newLimiter returns a limiter with the store of the server, and with a policy like configText.
func newLimiter(ctx context.Context, kind, redis string) (*mete.Limiter, error) {
	var matcher *policy.Matcher
	if kind == kindPolicy {
		p, err := policy.Load([]byte(policyText), policy.Options{})
		if err != nil {
			return nil, err
		}
		matcher = p
	}
	if redis == "" {
		store, err := memstore.New(memstore.Config{})
		if err != nil {
			return nil, err
		}
		return mete.New(store, matcher, mete.Config{})
	}
	node, err := redisstore.Open(ctx, "redis://"+redis)
	if err != nil {
		return nil, err
	}
	return mete.New(node, matcher, mete.Config{OnClose: node.Close, Deadline: time.Second})
}

const (
	domain = "bench"

	// configText has one limit for each address, which no run reaches.
	configText = `
domain: bench
descriptors:
- key: remote_address
  rate_limit: {unit: hour, requests_per_unit: 4000000000}
`

	policyText = `{"rules": [{
	"name": "address",
	"match": {"envoy:domain": "bench"},
	"limit_keys": ["descriptor:remote_address"],
	"algorithm_config": {"rate": "1000000/1s", "burst": 4000000000}
}]}`
)

// echo answers every request with the same answer. It is the upper bound of a service with these messages.
type echo struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
}

var echoed = &ratelimitv3.RateLimitResponse{
	OverallCode: ratelimitv3.RateLimitResponse_OK,
	Statuses: []*ratelimitv3.RateLimitResponse_DescriptorStatus{{
		Code:               ratelimitv3.RateLimitResponse_OK,
		CurrentLimit:       &ratelimitv3.RateLimitResponse_RateLimit{RequestsPerUnit: 4_000_000_000, Unit: ratelimitv3.RateLimitResponse_RateLimit_HOUR},
		LimitRemaining:     3_999_999_999,
		DurationUntilReset: &durationpb.Duration{Seconds: 1800},
	}},
}

func (echo) ShouldRateLimit(context.Context, *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	return echoed, nil
}
