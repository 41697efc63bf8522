// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"context"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/metehq/mete"
)

// An Algorithm selects how a [Service] counts hits.
type Algorithm uint8

const (
	// FixedWindow counts hits in windows that begin at multiples of the unit since the Unix epoch, as the reference
	// server does. Denied hits count too.
	FixedWindow Algorithm = iota

	// TokenBucket gives each counter a token bucket of requests_per_unit tokens, which refills as many per unit.
	// Denied requests take nothing.
	TokenBucket
)

// HeaderNames are the names of the response headers for the tightest limit.
type HeaderNames struct{ Limit, Remaining, Reset string }

// Options holds the settings of a [Service]. The zero Options is usable.
type Options struct {
	Algorithm Algorithm

	// ShadowMode allows every request. Statuses and counters stay as they are.
	ShadowMode bool

	// QuotaMode treats every limit as one with quota_mode.
	QuotaMode bool

	// DynamicMetadata adds the request and the metadata of its limits to answers.
	DynamicMetadata bool

	// Headers, if not nil, adds response headers to answers.
	Headers *HeaderNames

	// NearLimitRatio is the part of a limit from which hits count as near the limit. It is between 0 and 1; 0 means
	// 0.8.
	NearLimitRatio float32

	// KeyPrefix begins the keys of all counters.
	KeyPrefix string

	// StopCounting counts the hits of a request only if none of its limits is exceeded, and otherwise only for
	// exceeded limits. It is STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT of the reference server.
	StopCounting bool
}

// A Service implements Envoy's rate limit service v3. It is safe for concurrent use. Create one with [NewService].
type Service struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
}

// NewService returns a service that keeps its counters in the store of lim, which needs no policy. It has no
// configuration: every request is an error until the first [Service.SetConfig].
func NewService(lim *mete.Limiter, o Options) (*Service, error) { return &Service{}, nil }

// SetConfig replaces the configuration and counts it as loaded. Requests in progress keep the one that they began with.
func (s *Service) SetConfig(c *Config) {}

// CountConfigError counts a configuration that could not be loaded. The service keeps the one that it has.
func (s *Service) CountConfigError() {}

// Config returns the configuration, or nil before the first [Service.SetConfig].
func (s *Service) Config() *Config { return nil }

// A Counter is a value of the statistics, with the reference server's name for it, such as
// "ratelimit.service.rate_limit.DOMAIN.KEY_VALUE.total_hits".
type Counter struct {
	Name  string
	Value uint64
}

// Counters returns all counters in ascending order of their names.
func (s *Service) Counters() []Counter { return nil }

// ShouldRateLimit implements Envoy's rate limit service.
func (s *Service) ShouldRateLimit(ctx context.Context, req *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	return s.UnimplementedRateLimitServiceServer.ShouldRateLimit(ctx, req)
}
