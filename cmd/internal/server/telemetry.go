// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/buildinfo"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/telemetry"
	"github.com/metehq/mete/store"
)

// telemetryPatience is how long a server that ends waits for the collector to take
// what is left.
const telemetryPatience = 2 * time.Second

// serviceName is what the server is called where OTEL_SERVICE_NAME says nothing.
const serviceName = "mete"

// openTelemetry begins to tell a collector what the server does, where the settings
// name one, and to look at requests. The metrics must be there.
func (s *Server) openTelemetry(ctx context.Context) (err error) {
	if c := s.config.Telemetry; c.Endpoint != nil {
		headers := map[string]string{}
		for _, h := range c.Headers {
			name, value, _ := strings.Cut(h, "=")
			headers[name] = value
		}
		s.telemetry, err = telemetry.New(ctx, telemetry.Config{
			Endpoint: c.Endpoint, Headers: headers, Sample: c.Sample, Interval: c.Interval,
			Service: serviceName, Version: buildinfo.Read().Version, Metrics: s.metrics.Gatherer(),
			Failed: s.complain("the collector of telemetry does not take what it is sent"),
		})
		if err != nil {
			return err
		}
		s.log.Info("telemetry is exported", "endpoint", c.Endpoint.String(), "sample", c.Sample, "metrics_each", c.Interval)
	}
	s.watch = telemetry.NewWatch(s.telemetry, s.metrics.Decided)
	return nil
}

// closeTelemetry exports what is left, if the collector takes it soon.
func (s *Server) closeTelemetry() {
	if s.telemetry == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), telemetryPatience)
	defer cancel()
	if err := s.telemetry.Close(ctx); err != nil {
		s.log.Warn("some telemetry was not exported", "error", err)
	}
}

// watched looks at requests of the main address: those that are passed on, or those
// to the API.
func (s *Server) watched(next http.Handler) http.Handler {
	if s.inFront() {
		return s.watch.Wrap(proxyDoor, true, next)
	}
	return s.watch.Wrap(apiDoor, false, next)
}

// apiDoor says who asks for a decision by the API.
func apiDoor(r *http.Request) string {
	switch r.URL.Path {
	case "/v1/take":
		return metrics.Take
	case "/v1/decision":
		return metrics.Decision
	}
	return ""
}

// proxyDoor is of all that is passed on.
func proxyDoor(r *http.Request) string {
	switch r.URL.Path {
	case "/livez", "/readyz":
		return ""
	}
	return metrics.Proxy
}

// A timedNode measures what a store elsewhere is asked.
type timedNode struct {
	node
	store.Documents
	server *Server
}

// timed returns a node that is measured, with all that it can do.
func (s *Server) timed(n node) mete.Store {
	documents, ok := n.(store.Documents)
	if !ok {
		return n
	}
	return &timedNode{n, documents, s}
}

// asked tells the metrics, once there are any.
func (n *timedNode) asked(operation string, begin time.Time, err error) {
	if m := n.server.metrics; m != nil {
		m.Asked(operation, time.Since(begin), err)
	}
}
