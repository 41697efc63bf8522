// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Endpoints that make decisions.
const (
	Take     = "take"     // POST /v1/take
	Peek     = "peek"     // POST /v1/peek
	Decision = "decision" // /v1/decision
	Proxy    = "proxy"    // a request that is passed on

	EnvoyRateLimit     = "envoy_ratelimit" // the gRPC rate limit service
	EnvoyAuthorization = "envoy_authz"     // the gRPC external authorization service
)

// Operations of shared stores.
const (
	StoreTake   = "take"
	StoreRefund = "refund"
	StoreReset  = "reset"
	StoreHold   = "hold"
	StoreSettle = "settle"
	StoreRenew  = "renew"
)

// decisionBuckets range from a decision in memory to a long timeout. storeBuckets begin at a round trip within one
// machine.
var (
	decisionBuckets = []float64{10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 1}
	storeBuckets    = []float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 1}
)

// latency holds the histograms that this package owns.
type latency struct {
	decision    *prometheus.HistogramVec
	store       *prometheus.HistogramVec
	storeErrors *prometheus.CounterVec
}

func newLatency() latency {
	return latency{
		decision: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "mete_decision_seconds",
			Help:    "Time from reading the request headers to the decision (for a batch, the last one), by endpoint. It covers traced requests and one in sixteen others, without queues and the upstream.",
			Buckets: decisionBuckets,
		}, []string{"door"}),
		store: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "mete_store_operation_seconds",
			Help:    "Duration of operations of a shared store, including the wait for a connection or batch, without requests that the breaker or the denial cache answered.",
			Buckets: storeBuckets,
		}, []string{"operation"}),
		storeErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mete_store_operations_failed_total",
			Help: "Failed operations among them, including timeouts.",
		}, []string{"operation"}),
	}
}

// ObserveDecision records the latency of a decision and its trace ID, which may be empty.
func (r *Registry) ObserveDecision(door string, took time.Duration, trace string) {
	h := r.latency.decision.WithLabelValues(door)
	if e, ok := h.(prometheus.ExemplarObserver); ok && trace != "" {
		e.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": trace})
		return
	}
	h.Observe(took.Seconds())
}

// ObserveStoreCall records the latency of a store operation.
func (r *Registry) ObserveStoreCall(operation string, took time.Duration, err error) {
	r.latency.store.WithLabelValues(operation).Observe(took.Seconds())
	if err != nil {
		r.latency.storeErrors.WithLabelValues(operation).Inc()
	}
}
