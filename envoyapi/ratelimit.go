// SPDX-License-Identifier: Apache-2.0

package envoyapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/ratelimitfields"
)

// A RateLimit answers Envoy's rate limit service v3 with a limiter and its policy. It is safe for concurrent use.
// Register it with ratelimitv3.RegisterRateLimitServiceServer.
type RateLimit struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
	limiter *mete.Limiter
	config  RateLimitConfig
	fields  *ratelimitfields.Writer

	limits     sync.Map // *policy.Limit → *ratelimitv3.RateLimitResponse_RateLimit
	limitCount atomic.Int64
}

// RateLimitConfig holds the settings of a [RateLimit]. The zero RateLimitConfig is usable.
type RateLimitConfig struct {
	// Dialects are the RateLimit fields of answers: any of "draft-11", "legacy" and "x", or only "none". Empty means
	// draft-11 and legacy. Rules may set their own dialects.
	Dialects []string

	// DisableJitter disables the jitter of Retry-After. Otherwise a wait is up to 50% longer.
	DisableJitter bool

	// MayRefund, if not nil, reports whether a caller may send negative hits. Other callers get PERMISSION_DENIED if they
	// send them. It receives the context of the call, and must be safe for concurrent use. With nil, every caller may.
	MayRefund func(context.Context) bool

	// OmitFields omits all response headers, for an Envoy that adds its own (enable_x_ratelimit_headers).
	OmitFields bool
}

// NewRateLimit returns a rate limit service that decides by lim. The limiter is required.
func NewRateLimit(lim *mete.Limiter, c RateLimitConfig) (*RateLimit, error) {
	if lim == nil {
		return nil, errors.New("envoyapi: rate limit: a limiter is required: create one with mete.New")
	}
	fields, err := ratelimitfields.New(ratelimitfields.Config{Dialects: c.Dialects, DisableJitter: c.DisableJitter})
	if err != nil {
		return nil, fmt.Errorf("envoyapi: rate limit: %w", err)
	}
	return &RateLimit{limiter: lim, config: c, fields: fields}, nil
}

// ShouldRateLimit implements Envoy's rate limit service. The package documentation lists its answers and errors.
func (r *RateLimit) ShouldRateLimit(ctx context.Context, req *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	c := calls.Get().(*call)
	defer c.release()
	if err := c.read(req); err != nil {
		return nil, status.Error(codes.InvalidArgument, "envoyapi: "+err.Error())
	}
	if len(c.refunds) > 0 && r.config.MayRefund != nil && !r.config.MayRefund(ctx) {
		return nil, errRefund
	}
	d := mete.Decision{Allowed: true}
	if len(c.parts) > 0 {
		var err error
		take := r.limiter.Take
		if c.finished {
			take = r.limiter.Charge
		}
		if d, err = take(ctx, mete.Request{Parts: c.parts, Charges: c.charges}); err != nil {
			return nil, statusOf(err)
		}
	}
	if d.Allowed && len(c.refunds) > 0 {
		if err := r.limiter.Refund(ctx, mete.Request{Parts: c.refunds, Charges: c.returns}); err != nil {
			return nil, statusOf(fmt.Errorf("refund negative hits: %w", err))
		}
	}
	return r.answer(c, &d), nil
}

var errRefund = status.Error(codes.PermissionDenied, "envoyapi: negative hits refund tokens: send a token with a role that may refund, or no negative hits")

// statusOf returns the gRPC status for an error of the limiter.
func statusOf(err error) error {
	switch {
	case errors.Is(err, mete.ErrRequest), errors.Is(err, mete.ErrCost):
		return status.Error(codes.InvalidArgument, "envoyapi: "+err.Error())
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "envoyapi: "+err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, "envoyapi: "+err.Error())
	}
	return status.Error(codes.Unavailable, "envoyapi: "+err.Error())
}

// A call is the memory of one request in the engine's terms.
type call struct {
	facts   []facts
	parts   []mete.Part
	charges []mete.Charge
	refunds []mete.Part // of negative hits
	returns []mete.Charge
	indexes []index // by descriptor

	finished bool // a descriptor has ChargeKey
}

// An index relates a descriptor to its part, and to its charge if the caller set a limit.
type index struct {
	part   int    // -1 for negative hits
	charge string // the key, or empty
	limit  *commonv3.RateLimitDescriptor_RateLimitOverride
}

var calls = sync.Pool{New: func() any { return new(call) }}

// release returns c to the pool without the strings of the request.
func (c *call) release() {
	clear(c.facts)
	clear(c.parts)
	clear(c.charges)
	clear(c.refunds)
	clear(c.returns)
	clear(c.indexes)
	c.facts, c.parts, c.charges, c.refunds, c.returns, c.indexes = c.facts[:0], c.parts[:0], c.charges[:0], c.refunds[:0], c.returns[:0], c.indexes[:0]
	calls.Put(c)
}

// read translates the descriptors of a request.
func (c *call) read(req *ratelimitv3.RateLimitRequest) error {
	descriptors := req.GetDescriptors()
	switch {
	case req.GetDomain() == "":
		return errors.New("the request has no domain: set domain in the filter")
	case len(descriptors) == 0:
		return errors.New("the request has no descriptors: add rate limit actions to the route")
	case len(descriptors) > mete.MaxParts:
		return fmt.Errorf("%d descriptors: must be at most %d", len(descriptors), mete.MaxParts)
	}
	c.finished = false
	c.facts = slices.Grow(c.facts[:0], len(descriptors)) // pointers into it stay valid
	for i, d := range descriptors {
		if err := checkEntries(d.GetEntries()); err != nil {
			return fmt.Errorf("descriptor %d: %w", i, err)
		}
		c.facts = append(c.facts, facts{domain: req.GetDomain(), entries: d.GetEntries()})
		if !c.finished {
			_, c.finished = c.facts[i].find(ChargeKey, 1)
		}
		part, err := readHits(req, d)
		if err != nil {
			return fmt.Errorf("descriptor %d: %w", i, err)
		}
		part.Attributes = &c.facts[i]
		at := index{part: len(c.parts)}
		negative := d.GetIsNegativeHits()
		if override := d.GetLimit(); override != nil {
			charge, err := newCharge(&c.facts[i], override, &part)
			if err != nil {
				return fmt.Errorf("descriptor %d: %w", i, err)
			}
			if at.charge, at.limit = charge.Key, override; negative {
				c.returns = append(c.returns, charge)
			} else {
				c.charges = append(c.charges, charge)
			}
		}
		if negative {
			at = index{part: -1}
			c.refunds = append(c.refunds, part)
		} else {
			c.parts = append(c.parts, part)
		}
		c.indexes = append(c.indexes, at)
	}
	return nil
}
