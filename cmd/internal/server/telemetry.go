// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	"github.com/metehq/mete/cmd/internal/buildinfo"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/telemetry"
)

// telemetryPatience is the time that the collector has to take the rest when the server
// stops.
const telemetryPatience = 2 * time.Second

// serviceName is the name of the server without OTEL_SERVICE_NAME.
const serviceName = "mete"

// openTelemetry begins to measure requests and, if the settings name a collector, to export
// traces and metrics.
func (a *assembly) openTelemetry(ctx context.Context) (*telemetry.Watch, error) {
	c := a.config.Telemetry
	if c.Endpoint == "" {
		var none *telemetry.Telemetry
		a.metrics.Add(metrics.Telemetry(none.Stats))
		return telemetry.NewWatch(none, a.metrics.Decided), nil
	}
	t, err := telemetry.New(ctx, telemetry.Config{
		Endpoint: c.Endpoint, Headers: headerFields(c.Headers), Sample: c.Sample, Interval: c.Interval,
		Service: serviceName, Version: buildinfo.Read().Version, Metrics: a.metrics.Gatherer(),
		Failed: limitErrors(a.log, "telemetry export failed", "endpoint", c.Endpoint),
	})
	if err != nil {
		return nil, err
	}
	a.add(closing("telemetry", func() {
		ctx, cancel := context.WithTimeout(context.Background(), telemetryPatience)
		defer cancel()
		if err := t.Close(ctx); err != nil {
			a.log.Warn("telemetry not exported completely", "err", err)
		}
	}))
	a.metrics.Add(metrics.Telemetry(t.Stats))
	a.log.Info("telemetry exported", "endpoint", c.Endpoint, "sample", c.Sample, "metrics_each", c.Interval)
	return telemetry.NewWatch(t, a.metrics.Decided), nil
}
