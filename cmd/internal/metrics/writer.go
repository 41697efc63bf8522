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

// withLabel returns a writer that adds a label.
func (w writer) withLabel(label, value string) writer {
	return writer{w.to, prometheus.Labels{label: value}}
}

// A result is a count with the value of its result label.
type result struct {
	name string
	n    uint64
}

func (w writer) results(name, help string, all ...result) {
	for _, r := range all {
		w.withLabel("result", r.name).counter(name, help, float64(r.n))
	}
}

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
	w.counter("mete_let_through_tokens_total", "Tokens of requests that rules with on_store_error: open allowed without the store.", tokens(s.LetThrough))
	w.counter("mete_local_spent_tokens_total", "Tokens spent from local buckets while the store did not answer.", tokens(s.SpentLocally))
	w.counter("mete_local_charged_tokens_total", "Tokens among them that were charged to the store after the outage.", tokens(s.Charged))
	w.counter("mete_local_refilled_tokens_total", "Tokens among them that had returned before, mostly by refilling.", tokens(s.Refilled))
	w.counter("mete_local_excess_tokens_total", "Tokens among them that could not be charged: traffic admitted above the limits.", tokens(s.Excess))
	w.gauge("mete_local_unsettled_keys", "Keys with tokens that are not yet charged to the store.", float64(s.Unsettled))
}

func (w writer) memory(s memstore.Stats) {
	w.gauge("mete_memory_keys", "Buckets in memory.", float64(s.Keys))
	w.gauge("mete_memory_max_keys", "Maximum number of buckets in memory.", float64(s.MaxKeys))
	w.gauge("mete_memory_penalties", "Keys with a penalty in memory, or with a level that has not expired.", float64(s.Penalties))
	w.counter("mete_memory_unpenalized_total", "Denials that started no penalty because the store had too many.", float64(s.Unpenalized))
	w.counter("mete_memory_overflowed_total", "Takes that shared an overflow bucket because the store was full.", float64(s.Overflowed))
	w.counter("mete_memory_opened_total", "Takes that passed a rule with on_full: open because the store was full.", float64(s.Opened))
	w.counter("mete_memory_closed_total", "Takes that a rule with on_full: closed denied because the store was full.", float64(s.Closed))
}

func (w writer) guard(s guard.Stats) {
	for _, state := range []guard.State{guard.StateClosed, guard.StateHalfOpen, guard.StateOpen} {
		w.withLabel("state", string(state)).gauge("mete_breaker_state", "1 for the current state of the store's circuit breaker.", flag(s.State == state))
	}
	w.counter("mete_breaker_opened_total", "Times that the circuit breaker opened.", float64(s.Opened))
	w.counter("mete_breaker_rejected_total", "Calls that the circuit breaker rejected.", float64(s.Rejected))
}

func (w writer) deniedFromMemory(s mete.Stats) {
	w.counter("mete_denials_answered_total", "Takes denied from the denial cache.", float64(s.DeniedFromMemory))
	w.gauge("mete_denials_keys", "Buckets in the denial cache.", float64(s.DenyKeys))
}
