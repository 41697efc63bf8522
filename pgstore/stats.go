// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete/internal/calls"
)

// A Histogram counts values by powers of two: Counts[i] are those from 2^(i-1) up
// to, and not including, 2^i. Counts[0] are zeros, and the last has all larger.
type Histogram = calls.Histogram

// Stats are what a store has done since it was made, and how it is.
type Stats struct {
	// Calls are the calls of the database, Asks the takes and refunds that went in
	// them, and Failed the calls that brought an error.
	Calls, Asks, Failed int64

	// Refused are the takes that found the queue full.
	Refused int64

	// Waiting is how many takes wait for a call now, and InFlight how many calls are
	// on their way.
	Waiting, InFlight int

	// Latency is how long calls took, in microseconds, and Batch how much went in
	// one.
	Latency, Batch Histogram

	// Swept are the rows that this store has removed.
	Swept int64
}

// Stats returns what the store has done so far.
func (s *Store) Stats() Stats {
	lanes, made := s.lanes.Stats(), s.calls.Read()
	stats := Stats{
		Calls: made.Calls, Asks: made.Asks, Failed: made.Failed, Latency: made.Latency, Batch: made.Batch,
		Refused: lanes.Refused, Waiting: lanes.Waiting, InFlight: lanes.InFlight,
	}
	if s.sweeper != nil {
		stats.Swept = s.sweeper.swept.Load()
	}
	return stats
}

// prepares says whether connections with this mode may have prepared statements.
func prepares(mode pgx.QueryExecMode) bool {
	return mode == pgx.QueryExecModeCacheStatement
}
