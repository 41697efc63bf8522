// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete"
)

// A ClientInterceptor paces the calls of a client. Create one with [NewClient]. It is safe for concurrent use and
// serves all connections of a process.
type ClientInterceptor struct {
	limiter *mete.Limiter
	config  ClientConfig
	methods *methodTable
	budget  budget
	scopes  scopes
}

// NewClient returns an interceptor for outgoing calls.
//
// Before it sends a call, the interceptor takes from limiter and waits for the tokens, in the order of the
// callers. A nil limiter limits nothing. A call that would miss its deadline fails with DEADLINE_EXCEEDED without
// being sent. A call that can never be allowed fails with RESOURCE_EXHAUSTED.
//
// If a server ends a unary call with RESOURCE_EXHAUSTED and a RetryInfo, the interceptor retries it after that
// time plus jitter. Without RetryInfo it does not retry, because messages that are too large cause the same
// error. It also does not retry if the wait exceeds [ClientConfig.MaxDelay] or the deadline, or after
// [ClientConfig.MaxAttempts]. The caller then gets the server's error. A budget for all calls together allows ten
// retries plus one per ten successful calls, so that retries do not worsen an overload. Streams are never
// retried.
//
// Calls with the same [ClientConfig.Scope] are paced together, in order, by the limits that servers announce in
// RetryInfo and the ratelimit trailers. A call that would wait longer than MaxDelay fails with RESOURCE_EXHAUSTED
// without being sent, or with DEADLINE_EXCEEDED if its deadline is sooner.
//
// A server that sends RetryInfo permits a retry. If your server may have done part of the work, set MaxAttempts
// to 1. These retries multiply with the retries of gRPC's own configuration: use only one of them.
func NewClient(limiter *mete.Limiter, config ClientConfig) (*ClientInterceptor, error) {
	err := config.validate()
	methods, tableErr := newMethodTable(config.Methods, config.HashKey, limiter)
	if limiter == nil && len(config.Methods) > 0 {
		err = errors.Join(err, errors.New("method limits need a limiter"))
	}
	if err := errors.Join(err, tableErr); err != nil {
		return nil, fmt.Errorf("grpclimit: new client: %w", err)
	}
	return &ClientInterceptor{limiter: limiter, config: config, methods: methods}, nil
}

// Unary returns the interceptor of unary calls.
func (c *ClientInterceptor) Unary() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		scope := c.scope(ctx, method, cc)
		var trailers metadata.MD
		if scope != nil {
			opts = append(opts[:len(opts):len(opts)], grpc.Trailer(&trailers))
		}
		for attempt := 1; ; attempt++ {
			if err := c.pace(ctx, method, cc); err != nil {
				return err
			}
			ticket, err := c.waitTurn(ctx, scope, attempt > 1)
			if err != nil {
				return err
			}
			err = invoke(ctx, method, req, reply, cc, opts...)
			settle(scope, ticket, err, trailers)
			if err == nil {
				c.budget.earn()
				return nil
			}
			wait, again := c.shouldRetry(ctx, err, attempt)
			if !again {
				return err
			}
			if scope != nil { // scope waits
				continue
			}
			if err := sleep(ctx, wait); err != nil {
				return status.FromContextError(err).Err()
			}
		}
	}
}

func (c *ClientInterceptor) pace(ctx context.Context, method string, cc *grpc.ClientConn) error {
	if c.limiter == nil {
		return nil
	}
	attrs := &outgoing{ctx: ctx, method: method, target: target(cc), supply: c.config.Attribute}
	charges, entries, missing := c.methods.charges(attrs)
	if missing != nil {
		d := missingAttribute(missing)
		return denialStatus(&d).Err()
	}
	d, err := c.limiter.Wait(ctx, mete.Request{Attributes: attrs, Charges: charges})
	if setNames(&d, entries); err == nil && d.Allowed {
		return nil
	}
	return unsentError(ctx, &d, err)
}

func unsentError(ctx context.Context, d *mete.Decision, err error) error {
	switch {
	case errors.Is(err, mete.ErrDeadlineTooSoon):
		return status.Error(codes.DeadlineExceeded, "call was not sent because it would miss its deadline: "+denialStatus(d).Message())
	case ctx.Err() != nil || d.Rule == "":
		return undecidedError(ctx, err)
	}
	return denialStatus(d).Err()
}
