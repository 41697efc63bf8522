// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/queuewait"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/store"
)

// An Interceptor limits the calls that reach a server. Create one with [New]. It is safe for concurrent use.
type Interceptor struct {
	limiter *mete.Limiter
	config  Config
	source  *httpfacts.Source
	trusts  bool // there are trusted proxies, so forwarded addresses are read
	methods *methodTable
	fields  *ratelimitfields.Writer
}

// New returns an interceptor that applies limiter, which is required. The error lists every invalid setting.
func New(limiter *mete.Limiter, config Config) (*Interceptor, error) {
	var errs []error
	if limiter == nil {
		errs = append(errs, errors.New("limiter is required"))
	}
	errs = append(errs, config.validate())
	source, err := config.source()
	errs = append(errs, err)
	methods, err := newMethodTable(config.Methods, config.HashKey, limiter)
	errs = append(errs, err)
	fields, err := newFields()
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("grpclimit: new: %w", err)
	}
	return &Interceptor{
		limiter: limiter, config: config, source: source, methods: methods, fields: fields,
		trusts: config.TrustedHops > 0 || len(config.TrustedProxies) > 0,
	}, nil
}

// Unary returns the interceptor of unary calls. Chaining it twice charges every call twice.
func (in *Interceptor) Unary() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if in.isExempt(ctx, info.FullMethod) {
			return handler(ctx, req)
		}
		said, admitted, err := in.admit(ctx, info.FullMethod)
		if len(said) > 0 {
			_ = grpc.SetTrailer(ctx, said) // fails only without a transport
		}
		switch {
		case err != nil:
			return nil, err
		case admitted == nil:
			return handler(ctx, req)
		}
		return admitted.runUnary(ctx, req, handler)
	}
}

// Stream returns the interceptor of streams.
func (in *Interceptor) Stream() grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if in.isExempt(ss.Context(), info.FullMethod) {
			return handler(srv, ss)
		}
		said, admitted, err := in.admit(ss.Context(), info.FullMethod)
		if err != nil || !in.config.PerMessage || !info.IsClientStream {
			if len(said) > 0 {
				ss.SetTrailer(said)
			}
			if err != nil {
				return err
			}
			return admitted.runStream(ss, func(ss grpc.ServerStream) error { return handler(srv, ss) })
		}
		return admitted.runStream(ss, func(ss grpc.ServerStream) error {
			s := &serverStream{ServerStream: ss, in: in, method: info.FullMethod, trailers: said, slot: admitted.slot()}
			defer s.sendTrailers()
			return handler(srv, s)
		})
	}
}

// admit decides a call and waits for its turn. It returns the trailers and the error of a denial. The call is nil unless it
// awaits its response or holds slots.
func (in *Interceptor) admit(ctx context.Context, method string) (metadata.MD, *call, error) {
	attrs := &incoming{ctx: ctx, method: method, server: in}
	r, said, err := in.decide(ctx, method, attrs, bucket.SlotID{})
	if err != nil {
		return said, nil, err
	}
	admitted := newCall(r)
	if attrs.disputed != "" {
		err := status.Errorf(codes.InvalidArgument, "duplicate %q, which a rate limit reads: send it once", attrs.disputed)
		admitted.end(ctx, err, false)
		return said, nil, err
	}
	return said, admitted, nil
}

// admitMessage decides a further message of a stream that holds the slots with this ID. A message keeps its charge.
func (in *Interceptor) admitMessage(ctx context.Context, method string, slot bucket.SlotID) (metadata.MD, error) {
	attrs := &incoming{ctx: ctx, method: method, server: in}
	r, said, err := in.decide(ctx, method, attrs, slot)
	if err == nil && slot == (bucket.SlotID{}) {
		r.Slots.ReleaseSoon(ctx) // of a limit that the policy got later
	}
	if err == nil && attrs.disputed != "" {
		err = status.Errorf(codes.InvalidArgument, "duplicate %q, which a rate limit reads: send it once", attrs.disputed)
	}
	return said, err
}

// decide decides a call or a message and waits for its turn. It returns the trailers and the error of a denial.
func (in *Interceptor) decide(ctx context.Context, method string, attrs *incoming, slot bucket.SlotID) (*mete.Reservation, metadata.MD, error) {
	r, err := reserve(ctx, in.limiter, in.methods, attrs, in.config.MaxWait, slot)
	if err != nil {
		if ctx.Err() == nil { // too many limits apply, or an attribute is invalid
			in.report(ctx, &mete.Decision{Degraded: true, Failure: store.FailureError, Reason: mete.ReasonStoreError, Err: err})
		}
		return nil, nil, undecidedError(ctx, err)
	}
	if err := queuewait.Await(ctx, r, in.config.MaxDelay); err != nil {
		return nil, nil, status.FromContextError(ctx.Err()).Err()
	}
	in.report(ctx, &r.Decision)
	said := in.trailers(&r.Decision)
	if !r.Allowed {
		return r, said, in.deny(ctx, method, &r.Decision)
	}
	return r, said, nil
}

func (in *Interceptor) isExempt(ctx context.Context, method string) bool {
	return in.config.Exempt != nil && in.config.Exempt(ctx, method)
}

func (in *Interceptor) deny(ctx context.Context, method string, d *mete.Decision) error {
	if in.config.Denied != nil {
		if err := in.config.Denied(ctx, method, *d); err != nil {
			return err
		}
	}
	return denialStatus(d).Err()
}

func (in *Interceptor) report(ctx context.Context, d *mete.Decision) {
	if in.config.OnDecision != nil {
		in.config.OnDecision(ctx, d)
	}
}

func outlasts(ctx context.Context, wait time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > wait
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// undecidedError returns the status of a call that the limiter could not decide: its context is done, or the
// program supplied an invalid request.
func undecidedError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return status.Error(codes.Internal, "rate limit could not be checked")
}
