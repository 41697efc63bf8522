// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"net/http"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/metehq/mete"
)

// methods are the HTTP methods that spans may name, because a client can send any other text.
var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

// begin starts the span of a request. The only client text in the span is the method, if it is a standard one.
func (t *Telemetry) begin(ctx context.Context, door string, r *http.Request, at time.Time) (context.Context, trace.Span) {
	method := r.Method
	if !slices.Contains(methods, method) {
		method = "_OTHER"
	}
	return t.tracer.Start(ctx, "mete "+door, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(at),
		trace.WithAttributes(attribute.String("mete.door", door), attribute.String("http.request.method", method)))
}

func describe(span trace.Span, d *mete.Decision) {
	outcome := "denied"
	if d.Allowed {
		outcome = "allowed"
	}
	attrs := make([]attribute.KeyValue, 0, 8)
	text := func(name, value string) {
		if value != "" {
			attrs = append(attrs, attribute.String(name, value))
		}
	}
	text("mete.outcome", outcome)
	text("mete.rule", d.Rule)
	if s := d.Decider(); s != nil {
		text("mete.limit", s.Limit.Name)
	}
	text("mete.reason", d.Reason)
	if d.Override != nil {
		text("mete.override", d.Override.ID)
	}
	attrs = append(attrs, attribute.Bool("mete.degraded", d.Degraded))
	text("mete.failure", string(d.Failure))
	for i := range d.Shadow {
		if s := &d.Shadow[i]; !s.Allowed {
			text("mete.shadow_rule", s.Rule.Name)
			break
		}
	}
	span.SetAttributes(attrs...)
	span.AddEvent("decided")
}

func (o *observation) close(answer *statusWriter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.decisions > 1 {
		o.span.SetAttributes(attribute.Int("mete.decisions", o.decisions), attribute.Int("mete.denied", o.denied))
	}
	if answer.status > 0 {
		o.span.SetAttributes(attribute.Int("http.response.status_code", answer.status))
	}
	if answer.status >= http.StatusInternalServerError {
		o.span.SetStatus(codes.Error, "")
	}
	o.span.End()
}

// A statusWriter records the status of a response. Unwrap supports [http.ResponseController].
type statusWriter struct {
	http.ResponseWriter
	status int // 0: not written yet
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
