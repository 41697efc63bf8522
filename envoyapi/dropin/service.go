// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// MaxDescriptors bounds the descriptors of one request.
const MaxDescriptors = 1024

// An Algorithm selects how a [Service] counts hits.
type Algorithm uint8

const (
	// FixedWindow counts hits in windows that begin at multiples of the unit since the Unix epoch, as the reference
	// server does. Denied hits count too.
	FixedWindow Algorithm = iota

	// TokenBucket gives each counter a token bucket of requests_per_unit tokens, which refills as many per unit. A
	// request takes its hits from all buckets or from none, so denied hits do not count. Limits with shadow_mode
	// take theirs alone. A request has at most 64 buckets.
	TokenBucket
)

// HeaderNames are the names of the response headers that describe the tightest limit. All are required.
type HeaderNames struct{ Limit, Remaining, Reset string }

// Options holds the settings of a [Service]. The zero Options is usable.
type Options struct {
	Algorithm Algorithm

	// ShadowMode allows every request. Statuses and counters do not change.
	ShadowMode bool

	// QuotaMode treats every limit as one with quota_mode.
	QuotaMode bool

	// DynamicMetadata adds the request and the metadata of its limits to the answers.
	DynamicMetadata bool

	// Headers, if not nil, adds response headers to the answers.
	Headers *HeaderNames

	// NearLimitRatio is the part of a limit above which hits count as near the limit. It must be between 0 and 1;
	// 0 means 0.8.
	NearLimitRatio float32

	// KeyPrefix begins the keys of all counters. It has at most [MaxKeyPrefix] bytes.
	KeyPrefix string

	// StopCounting counts a request's hits only if no limit of it is exceeded. Otherwise only the exceeded limits
	// count. The reference server names it STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT. It has no effect on token buckets.
	StopCounting bool
}

const defaultNearRatio = 0.8

// A Service implements Envoy's rate limit service v3. It is safe for concurrent use, and starts no goroutine. Create
// one with [NewService].
type Service struct {
	ratelimitv3.UnimplementedRateLimitServiceServer

	limiter  *mete.Limiter
	options  Options
	counters *counters
	active   atomic.Pointer[active]
}

// An active configuration has the counters and buckets of its rules.
type active struct {
	config *Config
	rules  map[*rule]ruleState
}

type ruleState struct {
	counters *ruleCounters
	bucket   bucket.Limit // only for [TokenBucket]
}

// NewService returns a service that keeps its counters in the store of lim. The limiter must have no policy, and
// its Config.OnStoreError decides what happens without the store. With the zero value, requests fail with the
// code UNAVAILABLE, and Envoy's failure_mode_deny decides. With local buckets, each process admits its share.
//
// Every request is an error until the first [Service.SetConfig].
func NewService(lim *mete.Limiter, o Options) (*Service, error) {
	if o.NearLimitRatio == 0 {
		o.NearLimitRatio = defaultNearRatio
	}
	var err error
	switch {
	case lim == nil:
		err = errors.New("a limiter is required: create one with mete.New")
	case lim.Policy() != nil:
		err = errors.New("the limiter has a policy: create one without, because the configuration replaces it")
	case o.Algorithm > TokenBucket:
		err = fmt.Errorf("algorithm %d is unknown: use FixedWindow or TokenBucket", o.Algorithm)
	case !(o.NearLimitRatio >= 0 && o.NearLimitRatio <= 1):
		err = fmt.Errorf("near limit ratio %v: must be between 0 and 1", o.NearLimitRatio)
	case len(o.KeyPrefix) > MaxKeyPrefix:
		err = fmt.Errorf("a key prefix of %d bytes: must have at most %d", len(o.KeyPrefix), MaxKeyPrefix)
	case o.Headers != nil && (o.Headers.Limit == "" || o.Headers.Remaining == "" || o.Headers.Reset == ""):
		err = fmt.Errorf("header names %+v: all three are required", *o.Headers)
	}
	if err != nil {
		return nil, fmt.Errorf("dropin: new service: %w", err)
	}
	return &Service{limiter: lim, options: o, counters: newCounters()}, nil
}

// SetConfig replaces the configuration and counts it as loaded. Requests in progress keep the one that they began
// with, and counters keep their hits.
func (s *Service) SetConfig(c *Config) {
	a := &active{config: c, rules: map[*rule]ruleState{}}
	c.rules(func(r *rule) { a.rules[r] = s.newState(r, s.counters.register(r.name)) })
	s.active.Store(a)
	s.counters.configLoaded.Add(1)
}

func (s *Service) newState(r *rule, c *ruleCounters) ruleState {
	state := ruleState{counters: c}
	if s.options.Algorithm == TokenBucket && !r.unlimited {
		var err error
		if state.bucket, err = newBucket(r.limit.RequestsPerUnit, r.window); err != nil {
			// The zero limit denies every hit. TestNewBucket_EveryLimit shows that this does not happen.
			state.bucket = bucket.Limit{}
		}
	}
	return state
}

// CountConfigError counts a configuration that could not be loaded. The service keeps the one that it has.
func (s *Service) CountConfigError() { s.counters.configErrors.Add(1) }

// Config returns the configuration, or nil before the first [Service.SetConfig].
func (s *Service) Config() *Config {
	if a := s.active.Load(); a != nil {
		return a.config
	}
	return nil
}

var calls = sync.Pool{New: func() any { return new(call) }}

// ShouldRateLimit implements Envoy's rate limit service. Errors have the code INVALID_ARGUMENT for a wrong request, and
// UNAVAILABLE without a configuration or an answer of the store.
func (s *Service) ShouldRateLimit(ctx context.Context, req *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	a := s.active.Load()
	if err := checkRequest(req, a); err != nil {
		s.counters.serviceErrors.Add(1)
		return nil, err
	}
	c := calls.Get().(*call)
	defer c.release()
	if err := c.read(s, a, req); err != nil {
		s.counters.serviceErrors.Add(1)
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	var err error
	if s.options.Algorithm == TokenBucket {
		err = c.takeTokens(ctx, s)
	} else {
		err = c.countHits(ctx, s)
	}
	if err != nil {
		return nil, s.storeError(ctx, err)
	}
	c.countStatistics(s.options.NearLimitRatio)
	return c.respond(s, req), nil
}

func checkRequest(req *ratelimitv3.RateLimitRequest, a *active) error {
	switch n := len(req.GetDescriptors()); {
	case req.GetDomain() == "":
		return status.Error(codes.InvalidArgument, "dropin: the domain is empty: set domain in the rate limit filter")
	case n == 0:
		return status.Error(codes.InvalidArgument, "dropin: the request has no descriptors")
	case n > MaxDescriptors:
		return status.Errorf(codes.InvalidArgument, "dropin: the request has %d descriptors: must have at most %d", n, MaxDescriptors)
	case a == nil:
		return status.Error(codes.Unavailable, "dropin: no configuration is loaded yet")
	}
	return nil
}

// storeError returns the gRPC error for an error of the limiter, and counts it.
func (s *Service) storeError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		s.counters.storeErrors.Add(1)
		return status.FromContextError(ctx.Err()).Err()
	}
	if errors.Is(err, mete.ErrRequest) || errors.Is(err, mete.ErrCost) || errors.Is(err, errTooMany) {
		s.counters.serviceErrors.Add(1)
		return status.Errorf(codes.InvalidArgument, "dropin: %v", err)
	}
	s.counters.storeErrors.Add(1)
	return status.Errorf(codes.Unavailable, "dropin: the store does not answer: %v", err)
}
