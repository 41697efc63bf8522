// SPDX-License-Identifier: Apache-2.0

// Package telemetry exports spans of sampled requests and metrics to an OpenTelemetry collector, by OTLP over
// HTTP. It also measures the latency of decisions. Spans contain no key, path, header or address.
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

const exportTimeout = 10 * time.Second

// maxQueue bounds the spans in the queue. Excess spans are dropped.
const maxQueue = 2048

// Config configures a [Telemetry].
type Config struct {
	Endpoint *url.URL          // base URL of the collector, without /v1/traces or /v1/metrics
	Headers  map[string]string // for each export; empty: OTEL_EXPORTER_OTLP_HEADERS
	Sample   float64           // share of traced requests that have no parent span, from 0 to 1
	Interval time.Duration     // between two exports of metrics; 0: none
	Service  string            // service name; OTEL_SERVICE_NAME overrides it
	Version  string            // program version

	// Namespace and Instance are attributes of the service. Empty ones are left out.
	Namespace, Instance string

	Metrics prometheus.Gatherer // required if Interval is positive
	Failed  func(error)         // called with the error of a failed export; must not block
}

// A Telemetry exports in the background. Create it with [New]. It is safe for concurrent use. A nil Telemetry does
// nothing.
type Telemetry struct {
	sample  float64
	tracer  trace.Tracer
	spans   *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider // nil: metrics are not exported
	counts  counts
}

// Stats counts exports.
type Stats struct {
	Spans         uint64 // ended spans of sampled requests
	Exported      uint64 // spans that the collector accepted
	TracesFailed  uint64 // failed exports of spans
	MetricsFailed uint64 // failed exports of metrics
}

type counts struct {
	spans, exported, tracesFailed, metricsFailed atomic.Uint64
}

// New starts the export without waiting for the collector.
func New(ctx context.Context, c Config) (*Telemetry, error) {
	base := c.Endpoint
	if base == nil || base.Host == "" {
		return nil, errors.New("telemetry: the endpoint is not a URL such as http://127.0.0.1:4318")
	}
	attributes := []attribute.KeyValue{attribute.String("service.name", c.Service), attribute.String("service.version", c.Version)}
	if c.Namespace != "" {
		attributes = append(attributes, attribute.String("service.namespace", c.Namespace))
	}
	if c.Instance != "" {
		attributes = append(attributes, attribute.String("service.instance.id", c.Instance))
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attributes...),
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

func joinPath(base *url.URL, path string) string {
	u := *base
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	return u.String()
}

func (t *Telemetry) openSpans(ctx context.Context, c Config, base *url.URL, about *resource.Resource) error {
	options := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(joinPath(base, "/v1/traces")), otlptracehttp.WithTimeout(exportTimeout)}
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
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // Watch samples before it starts a span
		sdktrace.WithSpanProcessor(spanCounter{queue, &t.counts}))
	t.tracer = t.spans.Tracer("mete")
	return nil
}

func (t *Telemetry) openMetrics(ctx context.Context, c Config, base *url.URL, about *resource.Resource) error {
	if c.Interval == 0 {
		return nil
	}
	options := []otlpmetrichttp.Option{otlpmetrichttp.WithEndpointURL(joinPath(base, "/v1/metrics")), otlpmetrichttp.WithTimeout(exportTimeout)}
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

func (t *Telemetry) Stats() Stats {
	if t == nil {
		return Stats{}
	}
	return Stats{t.counts.spans.Load(), t.counts.exported.Load(), t.counts.tracesFailed.Load(), t.counts.metricsFailed.Load()}
}

// Close exports the queued data until ctx ends.
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

// A spanCounter counts spans before they enter the queue, which drops spans silently.
type spanCounter struct {
	sdktrace.SpanProcessor
	counts *counts
}

func (c spanCounter) OnEnd(s sdktrace.ReadOnlySpan) {
	c.counts.spans.Add(1)
	c.SpanProcessor.OnEnd(s)
}

// A spanExporter reports errors to Config.Failed. The SDK would write them to standard error.
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
