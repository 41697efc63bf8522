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
	w.counter("mete_store_calls_failed_total", "Of these, calls that brought an error or no answer in time.", float64(s.failed))
	w.counter("mete_store_asks_total", "Takes, refunds and loans that went in these calls.", float64(s.asks))
	w.counter("mete_store_refused_total", "Takes that found the queue full.", float64(s.refused))
	w.gauge("mete_store_waiting", "Takes that wait for a call.", float64(s.waiting))
	w.gauge("mete_store_in_flight", "Calls that are on the wire.", float64(s.inFlight))
	w.histogram("mete_store_call_seconds", "How long calls took.", s.latency, 6, 21, 1e6) // 63 µs to 2 s
	w.histogram("mete_store_batch_size", "Takes, refunds and loans in one call.", s.batch, 1, 12, 1)
}

func (w writer) redis(s redisstore.Stats) {
	of := w.with("store", "redis")
	of.remote(remote{
		calls: s.Calls, failed: s.Failed, asks: s.Asks, refused: s.Refused, waiting: s.Waiting, inFlight: s.InFlight,
		latency: s.Latency, batch: s.Batch,
	})
	of.gauge("mete_store_undoing", "Parts of takes that are still to be given back, as another part was denied or failed.", float64(s.Undoing))
	of.counter("mete_store_undo_lost_total", "Parts of takes that were not given back and come back by refilling.", float64(s.Lost))
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

func (w writer) postgres(s pgstore.Stats) {
	of := w.with("store", "postgres")
	of.remote(remote{
		calls: s.Calls, failed: s.Failed, asks: s.Asks, refused: s.Refused, waiting: s.Waiting, inFlight: s.InFlight,
		latency: s.Latency, batch: s.Batch,
	})
	of.counter("mete_store_swept_total", "Rows of full buckets that this server has removed.", float64(s.Swept))
}
