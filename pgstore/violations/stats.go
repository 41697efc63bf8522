// SPDX-License-Identifier: Apache-2.0

package violations

// Stats are what a recorder has done since it was made, in denials but for Rows,
// Failed and Queue. Recorded is Written, Dropped and Waiting together.
type Stats struct {
	// Recorded are all denials, and Written those that are in the table, in so many
	// Rows.
	Recorded, Written, Rows int64

	// Aggregated are those that share the row of another, and Overflowed those of
	// keys for which there was no room, of which the table has but the number.
	Aggregated, Overflowed int64

	// Dropped are those that are not in the table and never will be.
	Dropped int64

	// Failed are the writes that failed. They are tried again.
	Failed int64

	// Waiting are those that are still to be written, in a Queue of so many rows.
	Waiting int64
	Queue   int
}

// Stats returns what the recorder has done so far.
func (r *Recorder) Stats() Stats {
	// What leaves the queue is read first, so that nothing is ever below 0.
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
