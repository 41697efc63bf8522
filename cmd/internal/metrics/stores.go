// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/metehq/mete/internal/calls"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/redisstore"
)

// A remote holds the counters that all shared stores have.
type remote struct {
	calls, failed, asks, refused int64
	waiting, inFlight            int
	latency, batch               calls.Histogram
}

func (w writer) remote(s remote) {
	w.counter("mete_store_calls_total", "Calls of the store: scripts of Redis, statements of PostgreSQL.", float64(s.calls))
	w.counter("mete_store_calls_failed_total", "Calls among them that failed, including timeouts.", float64(s.failed))
	w.counter("mete_store_asks_total", "Takes, refunds and leases in these calls.", float64(s.asks))
	w.counter("mete_store_refused_total", "Takes that failed because the queue was full.", float64(s.refused))
	w.gauge("mete_store_waiting", "Takes in the queue.", float64(s.waiting))
	w.gauge("mete_store_in_flight", "Calls in progress.", float64(s.inFlight))
	w.histogram("mete_store_call_seconds", "Duration of calls.", s.latency, 6, 21, 1e6) // 63 µs to 2 s
	w.histogram("mete_store_batch_size", "Takes, refunds and leases per call.", s.batch, 1, 12, 1)
}

func (w writer) redis(s redisstore.Stats) {
	of := w.withLabel("store", "redis")
	of.remote(remote{
		calls: s.Calls, failed: s.Failed, asks: s.Asks, refused: s.Refused, waiting: s.Waiting, inFlight: s.InFlight,
		latency: s.Latency, batch: s.Batch,
	})
	of.gauge("mete_store_undoing", "Parts of takes that still need a refund because another part was denied or failed.", float64(s.Undoing))
	of.counter("mete_store_undo_lost_total", "Parts of takes that were not refunded; their buckets refill over time.", float64(s.Lost))
	w.leases(s.Leases)
}

func (w writer) leases(l redisstore.Leases) {
	w.gauge("mete_lease_buckets", "Buckets with leased tokens.", float64(l.Buckets))
	w.counter("mete_lease_granted_tokens_total", "Leased tokens.", l.Granted)
	w.counter("mete_lease_spent_tokens_total", "Leased tokens that were spent.", l.Spent)
	w.counter("mete_lease_returned_tokens_total", "Leased tokens that were returned.", l.Returned)
	w.counter("mete_lease_lost_tokens_total", "Leased tokens that were neither spent nor returned.", l.Lost)
	w.gauge("mete_lease_held_tokens", "Leased tokens that this server still holds.", l.Held)
	w.gauge("mete_lease_efficiency", "Share of the leased tokens that were spent, without those still held.", l.Efficiency())
	w.gauge("mete_lease_worst_under_use_tokens", "Largest number of tokens that this server can withhold from others.", l.WorstUnderUse)
}

func (w writer) postgres(s pgstore.Stats) {
	of := w.withLabel("store", "postgres")
	of.remote(remote{
		calls: s.Calls, failed: s.Failed, asks: s.Asks, refused: s.Refused, waiting: s.Waiting, inFlight: s.InFlight,
		latency: s.Latency, batch: s.Batch,
	})
	of.counter("mete_store_swept_total", "Rows of full buckets that this server deleted.", float64(s.Swept))
}
