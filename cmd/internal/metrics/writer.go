// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/redisstore"
)

// A writer sends metrics to whoever collects them.
type writer chan<- prometheus.Metric

func (w writer) counter(name, help string, v float64) {
	w <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, nil), prometheus.CounterValue, v)
}

func (w writer) gauge(name, help string, v float64) {
	w <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, v)
}

// histogram writes those of the powers of two that are of use, from 2^first to
// 2^last, in units of which per make one.
func (w writer) histogram(name, help string, h redisstore.Histogram, first, last int, per float64) {
	bounds := map[float64]uint64{}
	total := uint64(0)
	for i, n := range h.Counts {
		total += uint64(n)
		if i >= first && i <= last {
			bounds[float64(uint64(1)<<i-1)/per] = total
		}
	}
	w <- prometheus.MustNewConstHistogram(prometheus.NewDesc(name, help, nil, nil), total, float64(h.Sum)/per, bounds)
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
		v := 0.0
		if s.State == state {
			v = 1
		}
		d := prometheus.NewDesc("mete_breaker_state", "1 for the state that the circuit breaker of the store is in.", []string{"state"}, nil)
		w <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, string(state))
	}
	w.counter("mete_breaker_opened_total", "How often the circuit breaker opened.", float64(s.Opened))
	w.counter("mete_breaker_rejected_total", "Calls that the circuit breaker kept from the store.", float64(s.Rejected))
	w.counter("mete_denials_answered_total", "Takes denied from memory, because the store had just denied them.", float64(s.Denied))
	w.gauge("mete_denials_keys", "Buckets of which a denial is remembered.", float64(s.Keys))
}

func (w writer) redis(s redisstore.Stats) {
	w.counter("mete_store_calls_total", "Scripts that were called in Redis.", float64(s.Calls))
	w.counter("mete_store_calls_failed_total", "Of these, scripts that brought an error or no answer in time.", float64(s.Failed))
	w.counter("mete_store_asks_total", "Takes, refunds and loans that went in these calls.", float64(s.Asks))
	w.counter("mete_store_refused_total", "Takes that found the queue full.", float64(s.Refused))
	w.gauge("mete_store_waiting", "Takes that wait for a call.", float64(s.Waiting))
	w.gauge("mete_store_in_flight", "Calls that are on the wire.", float64(s.InFlight))
	w.histogram("mete_store_call_seconds", "How long calls took.", s.Latency, 6, 21, 1e6) // 63 µs to 2 s
	w.histogram("mete_store_batch_size", "Takes, refunds and loans in one call.", s.Batch, 1, 12, 1)
	w.gauge("mete_store_undoing", "Parts of takes that are still to be given back, as another part was denied or failed.", float64(s.Undoing))
	w.counter("mete_store_undo_lost_total", "Parts of takes that were not given back and come back by refilling.", float64(s.Lost))
	w.leases(s.Leases)
}

func (w writer) leases(l redisstore.Leases) {
	w.gauge("mete_lease_buckets", "Buckets from which tokens are taken in advance.", float64(l.Buckets))
	w.counter("mete_lease_granted_tokens_total", "Tokens taken in advance.", l.Granted)
	w.counter("mete_lease_spent_tokens_total", "Of these, tokens spent.", l.Spent)
	w.counter("mete_lease_returned_tokens_total", "Of these, tokens given back.", l.Returned)
	w.counter("mete_lease_lost_tokens_total", "Of these, tokens that neither were spent nor came back.", l.Lost)
	w.gauge("mete_lease_held_tokens", "Tokens taken in advance that are still to be spent.", l.Held)
	w.gauge("mete_lease_efficiency", "The part that was spent of what was taken in advance and is not held any more.", l.Efficiency())
	w.gauge("mete_lease_worst_under_use_tokens", "The most tokens that this server can keep from others.", l.WorstUnderUse)
}
