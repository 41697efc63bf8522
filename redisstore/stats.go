// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/calls"
)

// Stats holds counters since the store was created, and gauges of its current state.
type Stats struct {
	// Calls counts script calls, Asks the takes, refunds and loans in them, and Failed the calls that returned an
	// error.
	Calls, Asks, Failed int64

	// Refused counts takes that found the queue full.
	Refused int64

	// Waiting is the number of takes that wait for a call, and InFlight the number of calls in flight.
	Waiting, InFlight int

	// Latency is the duration of calls in microseconds, and Batch the number of asks per call.
	Latency, Batch Histogram

	// Undoing is the number of pending refunds to slots that did not answer. Lost counts abandoned refunds.
	// Their tokens come back by refilling.
	Undoing int
	Lost    int64

	// Leases describes tokens that were taken in advance.
	Leases Leases
}

// Leases describes a node's leases, in tokens, except for Buckets. Granted tokens are Spent, Returned, Held, or
// Lost because their answer was missing or late.
type Leases struct {
	Buckets                              int
	Granted, Spent, Returned, Lost, Held float64

	// WorstUnderUse is the most that this node can withhold from other nodes: see [Config.LeaseShare].
	WorstUnderUse float64
}

// Efficiency returns the spent part of all granted tokens that are no longer held; 1 if none were granted.
func (l Leases) Efficiency() float64 {
	if over := l.Spent + l.Returned + l.Lost; over > 0 {
		return l.Spent / over
	}
	return 1
}

// A Histogram counts values by powers of two. Counts[0] counts zeros, and Counts[i] the values from 2^(i-1) up to
// but not including 2^i. The last element also counts all larger values.
type Histogram = calls.Histogram

// Stats returns the store's counters and gauges.
func (s *Store) Stats() Stats {
	made, lanes := s.calls.Read(), s.lanes.Stats()
	stats := Stats{
		Calls: made.Calls, Asks: made.Asks, Failed: made.Failed, Refused: lanes.Refused,
		Waiting: lanes.Waiting, InFlight: lanes.InFlight,
		Latency: made.Latency, Batch: made.Batch,
	}
	stats.Undoing, stats.Lost = s.undo.pending()
	if s.leases != nil {
		held := s.leases.Stats()
		stats.Leases = Leases{
			Buckets: held.Leased, Granted: inTokens(held.Granted), Spent: inTokens(held.Spent), Returned: inTokens(held.Returned),
			Lost: inTokens(held.Lost), Held: inTokens(held.Unspent), WorstUnderUse: inTokens(held.WorstUnderUse),
		}
	}
	return stats
}

func inTokens(t bucket.Tokens) float64 { return float64(t) / float64(bucket.Token) }
