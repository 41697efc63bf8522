// SPDX-License-Identifier: Apache-2.0

package violations

// Stats counts denials since the recorder was created; Rows, Failed and Queue are not denials. Recorded is the
// sum of Written, Dropped and Waiting.
type Stats struct {
	// Recorded counts all denials, Written the denials in the table, and Rows the rows that hold them.
	Recorded, Written, Rows int64

	// Aggregated counts the denials that share a row. Overflowed counts the denials of keys that did not fit; the
	// table stores only their count.
	Aggregated, Overflowed int64

	// Dropped counts the denials that will never be in the table.
	Dropped int64

	// Failed counts the failed writes, which are retried.
	Failed int64

	// Waiting is the number of denials that wait for a write, in Queue rows.
	Waiting int64
	Queue   int
}

// Stats returns the recorder's counters.
func (r *Recorder) Stats() Stats {
	// Counters of removed denials are read first, so that Waiting is never negative.
	s := Stats{Written: r.written.Load(), Rows: r.rows.Load(), Dropped: r.dropped.Load(), Failed: r.failed.Load()}
	for i := range r.shards {
		recorded, aggregated, queue := r.shards[i].stats()
		s.Recorded += recorded
		s.Aggregated += aggregated
		s.Queue += queue
	}
	overflowed, aggregated, queue := r.others.stats()
	s.Overflowed = overflowed
	s.Aggregated += aggregated
	s.Queue += queue
	s.Waiting = s.Recorded - s.Written - s.Dropped
	return s
}

func (s *shard) stats() (recorded, aggregated int64, queue int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recorded, s.aggregated, len(s.rows)
}
