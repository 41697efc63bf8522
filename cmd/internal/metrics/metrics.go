// SPDX-License-Identifier: Apache-2.0

// Package metrics shows what a server is doing as Prometheus reads it. No label
// has a bucket key in it, nor anything else that a client sends.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/buildinfo"
	"github.com/metehq/mete/cmd/internal/bundle"
	"github.com/metehq/mete/cmd/internal/denials"
	"github.com/metehq/mete/cmd/internal/logpipe"
	"github.com/metehq/mete/cmd/internal/telemetry"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/jwtclaims"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/pgstore/violations"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/topkeys"
)

// Sources are the parts of a server that count. They are read when somebody
// asks. Those that are nil are not there.
type Sources struct {
	// Ready, if set, says whether the others can be read yet: before, only what the
	// registry counts itself is there. It must be safe for concurrent use.
	Ready func() bool

	Limiter   func() mete.Stats            // required
	Expires   func() time.Time             // of the policy in force; zero for never
	Overrides func() map[policy.Action]int // that are in force
	Memory    func() memstore.Stats
	Redis     func() redisstore.Stats
	Postgres  func() pgstore.Stats
	Guard     func() guard.Stats
	Nodes     func() int

	Violations func() violations.Stats
	Claims     func() jwtclaims.Stats
	Top        func() topkeys.Stats

	Policy    func() *policy.Matcher // in force
	Bundle    func() bundle.Status   // nil: the policy is no bundle at an address
	Reloads   func() Reloads
	Listeners func() []Listener
	Gateway   func() Gateway
	Denials   func() denials.Stats
	Telemetry func() telemetry.Stats
	Log       func() logpipe.Stats
	Build     buildinfo.Info // of the program; zero: unknown
}

// A Registry is what is known of a server. It is safe for concurrent use.
type Registry struct {
	sources   Sources
	registry  *prometheus.Registry
	decisions [2][len(makers)]prometheus.Counter // by whether they allow, and by whom they were made
	rules     ruleCounts
	latency   latency
	handler   http.Handler
}

// makers are who makes decisions.
var makers = [...]string{"store", "open", "closed", "local"}

const (
	byStore = iota
	byOpen
	byClosed
	byLocal
)

// New returns a registry of these sources.
func New(sources Sources) *Registry {
	r := &Registry{sources: sources, registry: prometheus.NewRegistry(), latency: newLatency()}
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mete_decisions_total",
		Help: "Decisions by their outcome and by who made them: the store or, where it could not, what the rules say then.",
	}, []string{"outcome", "by"})
	for allowed, outcome := range []string{"denied", "allowed"} {
		for i, by := range makers {
			r.decisions[allowed][i] = decisions.WithLabelValues(outcome, by)
		}
	}
	r.registry.MustRegister(decisions, r.latency.decision, r.latency.store, r.latency.storeErrors, r)
	r.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.handler = promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: maxScrapes, ErrorHandling: promhttp.ContinueOnError,
	})
	return r
}

// maxScrapes is how many may read the metrics at once. More are answered with 503.
const maxScrapes = 4

// Gatherer is where others than Prometheus find the same metrics.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.registry }

// Count counts a decision.
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

// ServeHTTP writes all there is, as text or in the other form of Prometheus.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.handler.ServeHTTP(w, req)
}

// Describe implements [prometheus.Collector]. That it names nothing lets Collect
// decide.
func (r *Registry) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (r *Registry) Collect(to chan<- prometheus.Metric) {
	if r.sources.Ready != nil && !r.sources.Ready() {
		return
	}
	w := writer{to: to}
	limiter := r.sources.Limiter()
	w.limiter(limiter)
	w.rules(&r.rules)
	w.server(&r.sources)
	if r.sources.Expires != nil {
		w.expiry(r.sources.Expires())
	}
	if r.sources.Bundle != nil {
		w.bundle(r.sources.Bundle())
	}
	if r.sources.Overrides != nil {
		w.overrides(r.sources.Overrides())
	}
	if r.sources.Memory != nil {
		w.memory(r.sources.Memory())
	}
	if r.sources.Redis != nil {
		w.redis(r.sources.Redis())
	}
	if r.sources.Postgres != nil {
		w.postgres(r.sources.Postgres())
	}
	if r.sources.Guard != nil {
		w.guard(r.sources.Guard())
		w.deniedFromMemory(limiter)
	}
	if r.sources.Top != nil {
		w.top(r.sources.Top())
	}
	if r.sources.Violations != nil {
		w.violations(r.sources.Violations())
	}
	if r.sources.Claims != nil {
		w.claims(r.sources.Claims())
	}
	if r.sources.Nodes != nil {
		w.gauge("mete_nodes", "Servers that share the store, this one included, as last seen.", float64(r.sources.Nodes()))
	}
}
