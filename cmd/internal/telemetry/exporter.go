// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

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
