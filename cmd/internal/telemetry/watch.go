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

// timedOf is of how many requests one is timed. The time of the others is worth
// more than another sample.
const timedOf = 16

// A Watch looks at some of the requests that ask for decisions: at those that are
// traced, and at a part of the others for how long their decision takes. It is safe
// for concurrent use.
type Watch struct {
	traces  *Telemetry // nil: none
	decided func(door string, took time.Duration, trace string)
}

// NewWatch returns a watch that makes spans by t, which may be nil, and tells
// decided how long decisions took and in which trace, if in any.
func NewWatch(t *Telemetry, decided func(door string, took time.Duration, trace string)) *Watch {
	return &Watch{t, decided}
}

// observed is the key of an observation in a context.
type observed struct{}

// An observation is of one request that is looked at.
type observation struct {
	begin time.Time
	span  trace.Span // nil: not traced

	mu        sync.Mutex // guards the fields below
	took      time.Duration
	decisions int
	denied    int
}

// Wrap returns a handler that looks at the requests that go to next. Door says
// whose they are; what it says nothing of is not looked at. Where requests are passed on,
// the next one in the trace is told whom it follows.
func (w *Watch) Wrap(door func(*http.Request) string, passes bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		parent, traced := w.traces.samples(r)
		if !traced && rand.Uint64()%timedOf != 0 {
			next.ServeHTTP(rw, r)
			return
		}
		name := door(r)
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
		next.ServeHTTP(status, following(r, context.WithValue(ctx, observed{}, o), passes))
	})
}

// following is r in a context and, where it is passed on, with the header fields of
// its span in place of those of its parent.
func following(r *http.Request, ctx context.Context, passes bool) *http.Request {
	r = r.WithContext(ctx)
	if passes {
		r.Header = r.Header.Clone()
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	}
	return r
}

// samples reports whether r is traced: as its parent is or, where it has none, by
// chance.
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

// Decision is told of decisions as [mete.Config.OnDecision].
func (w *Watch) Decision(ctx context.Context, d *mete.Decision) {
	o, _ := ctx.Value(observed{}).(*observation)
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.took = time.Since(o.begin)
	o.decisions++
	if o.span != nil && o.denied == 0 { // of a batch, the first denial or else the last decision
		describe(o.span, d)
	}
	if !d.Allowed {
		o.denied++
	}
}

// end tells how long the decision took, if there was one.
func (w *Watch) end(o *observation, door, trace string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.decisions > 0 {
		w.decided(door, o.took, trace)
	}
}
