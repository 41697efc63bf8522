// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/calls"
)

// Stats are what a store has done since it was made, and how it is.
type Stats struct {
	// Calls are the scripts that were called, Asks the takes, refunds and loans
	// that went in them, and Failed the calls that brought an error.
	Calls, Asks, Failed int64

	// Refused are the takes that found the queue full.
	Refused int64

	// Waiting is how many takes wait for a call now, and InFlight how many calls
	// are on the wire.
	Waiting, InFlight int

	// Latency is how long calls took, in microseconds, and Batch how much went in
	// one.
	Latency, Batch Histogram

	// Undoing is how much of takes that came to nothing is still to be given back
	// to slots that did not answer, and Lost how much has been given up: that comes
	// back by refilling.
	Undoing int
	Lost    int64

	// Leases is about what was taken in advance.
	Leases Leases
}

// Leases are a node's leases, in tokens but for Buckets. Granted is what was
// lent; it has been Spent, given back (Returned), Lost by an answer that did not
// come or came too late, or is Held.
type Leases struct {
	Buckets                              int
	Granted, Spent, Returned, Lost, Held float64

	// WorstUnderUse is the most that this node can keep from others: see
	// [Config.LeaseShare].
	WorstUnderUse float64
}

// Efficiency is how much of what was lent and is not held any more has been
// spent: 1 where nothing was lent.
func (l Leases) Efficiency() float64 {
	if over := l.Spent + l.Returned + l.Lost; over > 0 {
		return l.Spent / over
	}
	return 1
}

// A Histogram counts values by powers of two: Counts[i] are those from 2^(i-1) up
// to, and not including, 2^i. Counts[0] are zeros, and the last has all larger.
type Histogram = calls.Histogram

// Stats returns what the store has done so far.
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
