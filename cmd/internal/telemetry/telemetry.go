// SPDX-License-Identifier: Apache-2.0

// Package telemetry tells a collector of OpenTelemetry what a server does: spans
// of sampled requests, and the metrics, by OTLP over HTTP. It also measures how
// long decisions take. No span has a key in it, nor a path, a header or an address.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// exportTimeout bounds one export, with all that is tried for it.
const exportTimeout = 10 * time.Second

// maxQueue bounds the spans that wait for the collector. More are dropped.
const maxQueue = 2048

// A Config says what goes where.
type Config struct {
	Endpoint *url.URL          // base URL of the collector; /v1/traces and /v1/metrics are below it
	Headers  map[string]string // of each export; none: what OTEL_EXPORTER_OTLP_HEADERS says
	Sample   float64           // the part of requests that is traced where nobody has decided that before, 0 to 1
	Interval time.Duration     // between two exports of metrics; 0: none
	Service  string            // its name, unless OTEL_SERVICE_NAME says another
	Version  string            // of the program

	Metrics prometheus.Gatherer // required where Interval is above 0
	Failed  func(error)         // told why an export failed; it must not block
}

// A Telemetry exports behind the back of requests. [New] makes it; it is safe for
// concurrent use. A nil one does nothing.
type Telemetry struct {
	sample  float64
	tracer  trace.Tracer
	spans   *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider // nil: none are exported
	counts  counts
}

// Stats count what was exported.
type Stats struct {
	Spans         uint64 // of sampled requests that have ended
	Exported      uint64 // of these, spans that the collector has taken
	TracesFailed  uint64 // exports of spans that it has not
	MetricsFailed uint64 // exports of metrics that it has not
}

type counts struct {
	spans, exported, tracesFailed, metricsFailed atomic.Uint64
}

// New begins to export. It does not wait for the collector, which may come later.
func New(ctx context.Context, c Config) (*Telemetry, error) {
	base := c.Endpoint
	if base == nil || base.Host == "" {
		return nil, errors.New("telemetry: the endpoint is not a URL such as http://127.0.0.1:4318")
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", c.Service), attribute.String("service.version", c.Version)),
		resource.WithHost(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil && about == nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	t := &Telemetry{sample: c.Sample}
	if err := t.openSpans(ctx, c, base, about); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	if err := t.openMetrics(ctx, c, base, about); err != nil {
		return nil, errors.Join(fmt.Errorf("telemetry: %w", err), t.spans.Shutdown(ctx))
	}
	return t, nil
}

func below(base *url.URL, path string) string {
	u := *base
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	return u.String()
}

func (t *Telemetry) openSpans(ctx context.Context, c Config, base *url.URL, about *resource.Resource) error {
	options := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(below(base, "/v1/traces")), otlptracehttp.WithTimeout(exportTimeout)}
	if len(c.Headers) > 0 {
		options = append(options, otlptracehttp.WithHeaders(c.Headers))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return err
	}
	queue := sdktrace.NewBatchSpanProcessor(&spanExporter{exporter, &t.counts, c.Failed},
		sdktrace.WithMaxQueueSize(maxQueue), sdktrace.WithExportTimeout(exportTimeout))
	t.spans = sdktrace.NewTracerProvider(
		sdktrace.WithResource(about),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // of what was sampled before a span is begun
		sdktrace.WithSpanProcessor(spanCounter{queue, &t.counts}))
	t.tracer = t.spans.Tracer("mete")
	return nil
}

func (t *Telemetry) openMetrics(ctx context.Context, c Config, base *url.URL, about *resource.Resource) error {
	if c.Interval == 0 {
		return nil
	}
	options := []otlpmetrichttp.Option{otlpmetrichttp.WithEndpointURL(below(base, "/v1/metrics")), otlpmetrichttp.WithTimeout(exportTimeout)}
	if len(c.Headers) > 0 {
		options = append(options, otlpmetrichttp.WithHeaders(c.Headers))
	}
	exporter, err := otlpmetrichttp.New(ctx, options...)
	if err != nil {
		return err
	}
	reader := sdkmetric.NewPeriodicReader(&metricExporter{exporter, &t.counts, c.Failed},
		sdkmetric.WithInterval(c.Interval), sdkmetric.WithTimeout(exportTimeout),
		sdkmetric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(c.Metrics))))
	t.metrics = sdkmetric.NewMeterProvider(sdkmetric.WithResource(about), sdkmetric.WithReader(reader))
	return nil
}

// Stats returns the counts as they are.
func (t *Telemetry) Stats() Stats {
	if t == nil {
		return Stats{}
	}
	return Stats{t.counts.spans.Load(), t.counts.exported.Load(), t.counts.tracesFailed.Load(), t.counts.metricsFailed.Load()}
}

// Close exports what waits until ctx ends, and nothing later.
func (t *Telemetry) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	err := t.spans.Shutdown(ctx)
	if t.metrics != nil {
		err = errors.Join(err, t.metrics.Shutdown(ctx))
	}
	if err != nil {
		return fmt.Errorf("telemetry: close: %w", err)
	}
	return nil
}

// A spanCounter counts spans on their way to the queue, which drops silently.
type spanCounter struct {
	sdktrace.SpanProcessor
	counts *counts
}

func (c spanCounter) OnEnd(s sdktrace.ReadOnlySpan) {
	c.counts.spans.Add(1)
	c.SpanProcessor.OnEnd(s)
}

// A spanExporter keeps errors from the SDK, which would write them to standard
// error as they come.
type spanExporter struct {
	sdktrace.SpanExporter
	counts *counts
	failed func(error)
}

func (e *spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil {
		e.counts.tracesFailed.Add(1)
		e.failed(err)
		return nil
	}
	e.counts.exported.Add(uint64(len(spans)))
	return nil
}

// A metricExporter does the same for metrics.
type metricExporter struct {
	sdkmetric.Exporter
	counts *counts
	failed func(error)
}

func (e *metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	if err := e.Exporter.Export(ctx, m); err != nil {
		e.counts.metricsFailed.Add(1)
		e.failed(err)
	}
	return nil
}
