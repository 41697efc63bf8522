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

// A ClientInterceptor paces the calls that a client makes. It is made by
// [NewClient], and is safe for concurrent use: one serves all connections of a
// process.
type ClientInterceptor struct {
	limiter *mete.Limiter
	config  ClientConfig
	methods *methodTable
	budget  budget
	scopes  scopes
}

// NewClient returns an interceptor of outgoing calls.
//
// Before a call is sent it takes from limiter, and waits until the tokens are
// there, in the order in which callers came; a nil limiter limits nothing. Where
// they are not there before the call's deadline it is not sent, and fails with
// DEADLINE_EXCEEDED; one that can never be admitted fails with
// RESOURCE_EXHAUSTED.
//
// A unary call that a server ends with RESOURCE_EXHAUSTED and a RetryInfo is sent
// again after that time, and a little later by chance, so that not all clients
// come back at once. Without RetryInfo nothing is repeated: such errors are also
// those of messages that are too large. Nor is it where the wait is longer than
// [ClientConfig.MaxDelay] or would outlast the deadline, or after
// [ClientConfig.MaxAttempts]; the caller then gets the server's error. All calls
// together repeat no more than ten, and one for every ten that succeeded: who
// retries must not add to what overloads a server. Streams are never repeated.
//
// Calls of one [ClientConfig.Scope] are paced together by what servers say of
// their limits in RetryInfo and the ratelimit trailers, in the order in which they
// came. One that would have to wait longer than MaxDelay is not sent and fails
// with RESOURCE_EXHAUSTED, or with DEADLINE_EXCEEDED where its deadline is sooner.
//
// A server that sends RetryInfo says that the call may be repeated. Where it had
// already done some of its work, set MaxAttempts to 1. Retries that gRPC is
// configured to make multiply with these: have one or the other.
func NewClient(limiter *mete.Limiter, config ClientConfig) (*ClientInterceptor, error) {
	err := config.check()
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
			ticket, err := c.pass(ctx, scope, attempt > 1)
			if err != nil {
				return err
			}
			err = invoke(ctx, method, req, reply, cc, opts...)
			settle(scope, ticket, err, trailers)
			if err == nil {
				c.budget.earn()
				return nil
			}
			wait, again := c.again(ctx, err, attempt)
			if !again {
				return err
			}
			if scope != nil { // it knows when
				continue
			}
			if err := pause(ctx, wait); err != nil {
				return status.FromContextError(err).Err()
			}
		}
	}
}

// pace returns when the tokens for a call are there.
func (c *ClientInterceptor) pace(ctx context.Context, method string, cc *grpc.ClientConn) error {
	if c.limiter == nil {
		return nil
	}
	attrs := &outgoing{ctx: ctx, method: method, target: target(cc), supply: c.config.Attribute}
	charges, entries, missing := c.methods.charges(attrs)
	if missing != nil {
		d := missingAttribute(missing)
		return denial(&d).Err()
	}
	d, err := c.limiter.Wait(ctx, mete.Request{Attributes: attrs, Charges: charges})
	if name(&d, entries); err == nil && d.Allowed {
		return nil
	}
	return unsent(ctx, &d, err)
}

// unsent is the status of a call that was not sent.
func unsent(ctx context.Context, d *mete.Decision, err error) error {
	switch {
	case errors.Is(err, mete.ErrDeadlineTooSoon):
		return status.Error(codes.DeadlineExceeded, "call was not sent, since its turn comes after its deadline: "+denial(d).Message())
	case ctx.Err() != nil || d.Rule == "":
		return undecided(ctx, err)
	}
	return denial(d).Err()
}
