// SPDX-License-Identifier: Apache-2.0

// Package metrics exposes the metrics of a server in the Prometheus format. No label contains a bucket key or
// other data from clients, except names of models that a provider has accepted.
package metrics

import (
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// A Source writes the metrics of one part of a server. It is called for each scrape and must be safe for
// concurrent use.
type Source func(writer)

// A Registry holds the metrics of a server. It is safe for concurrent use.
type Registry struct {
	registry  *prometheus.Registry
	decisions [2][len(makers)]prometheus.Counter // by allowed and maker
	holds     *prometheus.CounterVec
	rules     ruleCounts
	latency   latency
	handler   http.Handler

	mu      sync.Mutex // guards sources
	sources []Source
}

// makers are the values of the label for the origin of a decision.
var makers = [...]string{"store", "open", "closed", "local"}

const (
	byStore = iota
	byOpen
	byClosed
	byLocal
)

// New returns a registry with only its own counters. [Registry.Add] adds others.
func New() *Registry {
	r := &Registry{registry: prometheus.NewRegistry(), latency: newLatency()}
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mete_decisions_total",
		Help: "Decisions by outcome and maker: the store or, during an outage, the on_store_error of the rule.",
	}, []string{"outcome", "by"})
	for allowed, outcome := range []string{"denied", "allowed"} {
		for i, by := range makers {
			r.decisions[allowed][i] = decisions.WithLabelValues(outcome, by)
		}
	}
	r.holds = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mete_holds_total",
		Help: "Calls about holds, by operation (hold, settle, release, renew) and result. Denials of holds also count as decisions.",
	}, []string{"operation", "result"})
	r.registry.MustRegister(r.holds, decisions, r.latency.decision, r.latency.store, r.latency.storeErrors, r)
	r.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.handler = promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: maxScrapes, ErrorHandling: promhttp.ContinueOnError,
	})
	return r
}

// maxScrapes bounds concurrent scrapes. Excess scrapes get status 503.
const maxScrapes = 4

// Gatherer returns the metrics for other exporters.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.registry }

// CountSettlement counts the effect of a response. It is for [mete.Config.OnSettlement].
func (r *Registry) CountSettlement(s *policy.Settlement) {
	r.rules.counter(s.Rule.Name).settled[settlementIndex(s)].Add(1)
}

// CountHold counts a call about a hold. It is for [mete.Config.OnHold].
func (r *Registry) CountHold(op, result string) { r.holds.WithLabelValues(op, result).Inc() }

func (r *Registry) Count(d *mete.Decision) {
	allowed, by := 0, byStore
	if d.Allowed {
		allowed = 1
	}
	switch {
	case !d.Degraded:
	case len(d.Limits()) > 0:
		by = byLocal
	case d.Allowed:
		by = byOpen
	default:
		by = byClosed
	}
	r.decisions[allowed][by].Inc()
	r.rules.count(d)
}

// ServeHTTP writes all metrics in the format that the client accepts.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.handler.ServeHTTP(w, req)
}

// Describe implements [prometheus.Collector]. It sends no descriptions, so that Collect may return any metric.
func (r *Registry) Describe(chan<- *prometheus.Desc) {}

func (r *Registry) Collect(to chan<- prometheus.Metric) {
	w := writer{to: to}
	w.rules(&r.rules)
	r.mu.Lock()
	sources := r.sources
	r.mu.Unlock()
	for _, write := range sources {
		write(w)
	}
}

func (r *Registry) Add(sources ...Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources = append(r.sources[:len(r.sources):len(r.sources)], sources...)
}

// Register adds collectors of other packages to the page.
func (r *Registry) Register(collectors ...prometheus.Collector) {
	r.registry.MustRegister(collectors...)
}
