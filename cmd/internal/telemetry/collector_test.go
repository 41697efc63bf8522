// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collectmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collecttrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A collector receives OTLP over HTTP.
type collector struct {
	*httptest.Server
	t      *testing.T
	status int // what it answers instead of 200; 0 for that

	mu       sync.Mutex // guards the fields below
	spans    []*tracepb.Span
	metrics  map[string]*metricspb.Metric // as last received
	resource map[string]string            // attributes of the sender
	header   http.Header                  // of the last export
	wire     []byte                       // all that came
}

func newCollector(t *testing.T) *collector {
	c := &collector{t: t, metrics: map[string]*metricspb.Metric{}, resource: map[string]string{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.status != 0 {
		w.WriteHeader(c.status)
		return
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		zipped, err := gzip.NewReader(r.Body)
		if err != nil {
			c.t.Error(err)
			return
		}
		body = zipped
	}
	data, err := io.ReadAll(body)
	if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("got content of type %q and %v", r.Header.Get("Content-Type"), err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header, c.wire = r.Header.Clone(), append(c.wire, data...)
	var answer proto.Message
	switch r.URL.Path {
	case "/v1/traces":
		answer = c.takeSpans(data)
	case "/v1/metrics":
		answer = c.takeMetrics(data)
	default:
		c.t.Errorf("got an export at %s", r.URL.Path)
		return
	}
	text, err := proto.Marshal(answer)
	if err != nil {
		c.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.Write(text)
}

func (c *collector) takeSpans(data []byte) proto.Message {
	var export collecttrace.ExportTraceServiceRequest
	if err := proto.Unmarshal(data, &export); err != nil {
		c.t.Error(err)
	}
	for _, r := range export.ResourceSpans {
		c.sender(r.Resource.GetAttributes())
		for _, s := range r.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
	return &collecttrace.ExportTraceServiceResponse{}
}

func (c *collector) takeMetrics(data []byte) proto.Message {
	var export collectmetrics.ExportMetricsServiceRequest
	if err := proto.Unmarshal(data, &export); err != nil {
		c.t.Error(err)
	}
	for _, r := range export.ResourceMetrics {
		c.sender(r.Resource.GetAttributes())
		for _, s := range r.ScopeMetrics {
			for _, m := range s.Metrics {
				c.metrics[m.Name] = m
			}
		}
	}
	return &collectmetrics.ExportMetricsServiceResponse{}
}

func (c *collector) sender(attrs []*commonpb.KeyValue) {
	for _, a := range attrs {
		c.resource[a.Key] = a.Value.GetStringValue()
	}
}

// attributes returns the attributes of a span as text.
func attributes(s *tracepb.Span) map[string]string {
	m := map[string]string{}
	for _, a := range s.Attributes {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			m[a.Key] = v.StringValue
		default:
			m[a.Key] = a.Value.String()
		}
	}
	return m
}
