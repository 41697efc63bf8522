// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/internal/calls"
	"github.com/metehq/mete/memstore"
)

// A writer sends metrics to a collector.
type writer struct {
	to     chan<- prometheus.Metric
	labels prometheus.Labels // added to all metrics
}

func (w writer) counter(name, help string, v float64) {
	w.to <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, w.labels), prometheus.CounterValue, v)
}

func (w writer) gauge(name, help string, v float64) {
	w.to <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, w.labels), prometheus.GaugeValue, v)
}

// with returns a writer that adds a label.
func (w writer) with(label, value string) writer {
	return writer{w.to, prometheus.Labels{label: value}}
}

// A result is a count with the value of its result label.
type result struct {
	name string
	n    uint64
}

// results writes one counter per result.
func (w writer) results(name, help string, all ...result) {
	for _, r := range all {
		w.with("result", r.name).counter(name, help, float64(r.n))
	}
}

// flag returns 1 for true.
func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// histogram writes the buckets from 2^first to 2^last, with per units in one unit of the metric.
func (w writer) histogram(name, help string, h calls.Histogram, first, last int, per float64) {
	bounds := map[float64]uint64{}
	total := uint64(0)
	for i, n := range h.Counts {
		total += uint64(n)
		if i >= first && i <= last {
			bounds[float64(uint64(1)<<i-1)/per] = total
		}
	}
	w.to <- prometheus.MustNewConstHistogram(prometheus.NewDesc(name, help, nil, w.labels), total, float64(h.Sum)/per, bounds)
}

func tokens(t bucket.Tokens) float64 { return float64(t) / float64(bucket.Token) }

func (w writer) limiter(s mete.Stats) {
	w.counter("mete_let_through_tokens_total", "Tokens of requests that rules which say open let through without the store.", tokens(s.LetThrough))
	w.counter("mete_local_spent_tokens_total", "Tokens spent from buckets of this process while the store did not answer.", tokens(s.SpentLocally))
	w.counter("mete_local_charged_tokens_total", "Of these, tokens charged to the store when it answered again.", tokens(s.Charged))
	w.counter("mete_local_refilled_tokens_total", "Of these, tokens that had come back before, mostly by refilling.", tokens(s.Refilled))
	w.counter("mete_local_excess_tokens_total", "Of these, tokens that could not be charged: what was admitted beyond limits.", tokens(s.Excess))
	w.gauge("mete_local_unsettled_keys", "Keys with something that is still to be charged to the store.", float64(s.Unsettled))
}

func (w writer) memory(s memstore.Stats) {
	w.gauge("mete_memory_keys", "Buckets in memory.", float64(s.Keys))
	w.gauge("mete_memory_max_keys", "The most buckets that there may be in memory.", float64(s.MaxKeys))
	w.counter("mete_memory_overflowed_total", "Takes of keys for which there was no room, and which share a bucket.", float64(s.Overflowed))
}

func (w writer) guard(s guard.Stats) {
	for _, state := range []guard.State{guard.Closed, guard.HalfOpen, guard.Open} {
		w.with("state", string(state)).gauge("mete_breaker_state", "1 for the state that the circuit breaker of the store is in.", flag(s.State == state))
	}
	w.counter("mete_breaker_opened_total", "How often the circuit breaker opened.", float64(s.Opened))
	w.counter("mete_breaker_rejected_total", "Calls that the circuit breaker kept from the store.", float64(s.Rejected))
}

func (w writer) deniedFromMemory(s mete.Stats) {
	w.counter("mete_denials_answered_total", "Takes denied from memory, because the store had just denied them.", float64(s.DeniedFromMemory))
	w.gauge("mete_denials_keys", "Buckets of which a denial is remembered.", float64(s.DenyKeys))
}
