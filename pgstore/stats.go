// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete/internal/calls"
)

// A Histogram counts values by powers of two. Counts[0] counts zeros, and Counts[i] the values from 2^(i-1) up to
// but not including 2^i. The last element also counts all larger values.
type Histogram = calls.Histogram

// Stats holds counters since the store was created, and gauges of its current state.
type Stats struct {
	// Calls counts database calls, Asks the takes and refunds in them, and Failed the calls that returned an
	// error.
	Calls, Asks, Failed int64

	// Refused counts takes that found the queue full.
	Refused int64

	// Waiting is the number of takes that wait for a call, and InFlight the number of calls in flight.
	Waiting, InFlight int

	// Latency is the duration of calls in microseconds, and Batch the number of asks per call.
	Latency, Batch Histogram

	// Swept counts the rows that this store has swept.
	Swept int64
}

// Stats returns the store's counters and gauges.
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

func canPrepare(mode pgx.QueryExecMode) bool {
	return mode == pgx.QueryExecModeCacheStatement
}
