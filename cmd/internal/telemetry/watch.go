// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/metehq/mete"
)

// timedOf is the sampling rate for latency: one request in timedOf is timed. Timing every request would cost too
// much.
const timedOf = 16

// A Watch observes decision requests: all traced requests, and a sample of the others for the latency of their
// decisions. It is safe for concurrent use.
type Watch struct {
	traces  *Telemetry // nil: none
	decided func(door string, took time.Duration, trace string)
}

// NewWatch returns a watch. It creates spans with t, which may be nil. It calls decided with the latency of a
// decision and its trace ID, which may be empty.
func NewWatch(t *Telemetry, decided func(door string, took time.Duration, trace string)) *Watch {
	return &Watch{t, decided}
}

type observed struct{}

type observation struct {
	begin time.Time
	span  trace.Span // nil: not traced

	mu        sync.Mutex // guards the fields below
	took      time.Duration
	decisions int
	denied    int
}

// Wrap returns a handler that observes the requests to next. It ignores requests without an endpoint. If passes is true, next forwards the request, and Wrap sets its trace
// headers.
func (w *Watch) Wrap(endpoint func(*http.Request) string, passes bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		parent, traced := w.traces.samples(r)
		if !traced && rand.Uint64()%timedOf != 0 {
			next.ServeHTTP(rw, r)
			return
		}
		name := endpoint(r)
		if name == "" {
			next.ServeHTTP(rw, r)
			return
		}
		o := &observation{begin: time.Now()}
		ctx := r.Context()
		if !traced {
			defer w.end(o, name, "")
			next.ServeHTTP(rw, r.WithContext(context.WithValue(ctx, observed{}, o)))
			return
		}
		ctx, o.span = w.traces.begin(trace.ContextWithRemoteSpanContext(ctx, parent), name, r, o.begin)
		status := &statusWriter{ResponseWriter: rw}
		defer w.end(o, name, o.span.SpanContext().TraceID().String())
		defer o.close(status)
		next.ServeHTTP(status, withTrace(r, context.WithValue(ctx, observed{}, o), passes))
	})
}

// Begin observes a sample of the calls of a protocol other than HTTP, without traces. The caller passes the context to
// the limiter, and calls end after the decision.
func (w *Watch) Begin(ctx context.Context, endpoint string) (observing context.Context, end func()) {
	if endpoint == "" || rand.Uint64()%timedOf != 0 {
		return ctx, func() {}
	}
	o := &observation{begin: time.Now()}
	return context.WithValue(ctx, observed{}, o), func() { w.end(o, endpoint, "") }
}

// withTrace returns r with a context. If r is forwarded, its trace headers name the new span.
func withTrace(r *http.Request, ctx context.Context, passes bool) *http.Request {
	r = r.WithContext(ctx)
	if passes {
		r.Header = r.Header.Clone()
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	}
	return r
}

// samples reports whether r is traced. The parent span decides or, without one, chance.
func (t *Telemetry) samples(r *http.Request) (parent trace.SpanContext, traced bool) {
	if t == nil {
		return parent, false
	}
	if len(r.Header["Traceparent"]) > 0 {
		ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(r.Header))
		if parent = trace.SpanContextFromContext(ctx); parent.IsValid() {
			return parent, parent.IsSampled()
		}
	}
	return parent, t.sample > 0 && rand.Float64() < t.sample
}

// RecordDecision records a decision. It is a [mete.Config.OnDecision] hook.
func (w *Watch) RecordDecision(ctx context.Context, d *mete.Decision) {
	o, _ := ctx.Value(observed{}).(*observation)
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.took = time.Since(o.begin)
	o.decisions++
	if o.span != nil && o.denied == 0 { // of a batch, the first denial or the last decision
		describe(o.span, d)
	}
	if !d.Allowed {
		o.denied++
	}
}

// end reports the latency of the decision, if there was one.
func (w *Watch) end(o *observation, door, trace string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.decisions > 0 {
		w.decided(door, o.took, trace)
	}
}
