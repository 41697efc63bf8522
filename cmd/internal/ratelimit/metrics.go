// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/metehq/mete/envoyapi/dropin"
)

// Names of counters, as the service sends them to StatsD.
const (
	rulePrefix    = "ratelimit.service.rate_limit."
	errorPrefix   = "ratelimit.service.call.should_rate_limit."
	servicePrefix = "ratelimit.service."
	serverPrefix  = "ratelimit_server."
)

// ruleStats are the last parts of the names of counters of limits that have labels in Prometheus.
var ruleStats = map[string]bool{"near_limit": true, "over_limit": true, "total_hits": true, "within_limit": true, "shadow_mode": true}

// A counterCollector exports counters under the names that the original's own mapping for Prometheus gives them.
type counterCollector struct{ counters func() []dropin.Counter }

// Describe implements [prometheus.Collector]. It sends no descriptions, so that Collect may return any metric.
func (c counterCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector]. Limits with equal first two parts share one metric, as in the original.
func (c counterCollector) Collect(to chan<- prometheus.Metric) {
	sums := map[series]float64{}
	for _, counter := range c.counters() {
		if counter.Value > 0 { // the original exports a counter from its first hit on
			sums[seriesOf(counter.Name)] += float64(counter.Value)
		}
	}
	for s, v := range sums {
		to <- prometheus.MustNewConstMetric(s.desc(), prometheus.CounterValue, v, s.values()...)
	}
}

// A series is a metric name with its labels. Empty labels do not exist.
type series struct {
	name               string
	domain, key1, key2 string
	errType            string
}

// seriesOf returns the series of a counter.
func seriesOf(name string) series {
	if rest, ok := strings.CutPrefix(name, errorPrefix); ok {
		return series{name: "ratelimit_service_should_rate_limit_error", errType: rest}
	}
	rest, isRule := strings.CutPrefix(name, rulePrefix)
	parts := strings.Split(rest, ".")
	last := len(parts) - 1
	if !isRule || last < 2 || !ruleStats[parts[last]] {
		return series{name: escapeMetric(name)}
	}
	s := series{name: "ratelimit_service_rate_limit_" + parts[last], domain: parts[0], key1: parts[1]}
	if last > 2 {
		s.key2 = parts[2]
	}
	return s
}

// escapeMetric returns a valid name of a metric. The StatsD exporter replaces other bytes with underscores, too.
func escapeMetric(name string) string {
	escaped := []byte(name)
	for i, b := range escaped {
		isLetter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
		if !isLetter && (b < '0' || b > '9') {
			escaped[i] = '_'
		}
	}
	return string(escaped)
}

func (s series) desc() *prometheus.Desc {
	var labels []string
	for _, l := range s.labels() {
		labels = append(labels, l[0])
	}
	return prometheus.NewDesc(s.name, "Counter of envoyproxy/ratelimit.", labels, nil)
}

func (s series) values() (values []string) {
	for _, l := range s.labels() {
		values = append(values, strings.ToValidUTF8(l[1], "�"))
	}
	return values
}

func (s series) labels() (labels [][2]string) {
	for _, l := range [][2]string{{"domain", s.domain}, {"key1", s.key1}, {"key2", s.key2}, {"err_type", s.errType}} {
		if l[1] != "" {
			labels = append(labels, l)
		}
	}
	return labels
}

// callMetrics count and time the calls of each method.
type callMetrics struct {
	total *prometheus.CounterVec
	took  *prometheus.HistogramVec
	scale float64 // of a second
}

func newCallMetrics(milliseconds bool) *callMetrics {
	m := &callMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ratelimit_service_total_requests", Help: "gRPC calls by method.",
		}, []string{"grpc_method"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ratelimit_service_response_time_seconds", Help: "Duration of gRPC calls by method.", Buckets: prometheus.DefBuckets,
		}, []string{"grpc_method"}),
		scale: 1,
	}
	if milliseconds {
		m.scale = 1000
	}
	return m
}

// observe is an interceptor.
func (m *callMetrics) observe(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	begin := time.Now()
	reply, err := handler(ctx, request)
	method := info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:]
	m.total.WithLabelValues(method).Inc()
	m.took.WithLabelValues(method).Observe(time.Since(begin).Seconds() * m.scale)
	return reply, err
}
