// SPDX-License-Identifier: Apache-2.0

package bucket

import "time"

// Room returns the largest cost that a take admits: the remaining tokens plus the free places in the queue,
// rounded down to a thousandth. Decisions call it for each limit, so it does not copy s.
func (s *Snapshot) Room() Tokens {
	l := &s.Limit
	if !l.Queued() || s.penalty != 0 {
		return s.remaining()
	}
	return max(l.capacity+l.debt-Tokens(ceilDiv(s.spent, l.Unit())), 0)
}

// RoomAfter returns the time until [Snapshot.Room] reaches t if nothing else is taken. It is 0 if it already
// does, and [Never] if the limit is below t. For a sliding log and a concurrency limit it is
// [Snapshot.FullAfter], an upper bound. A snapshot does not contain the log's entries or the slots.
func (s Snapshot) RoomAfter(t Tokens) time.Duration {
	if left, _ := s.Penalty(); left > 0 {
		s.penalty = 0
		return max(s.RoomAfter(t), left)
	}
	l := &s.Limit
	switch l.Algorithm() {
	case AlgorithmSlidingWindow:
		return duration(s.window().retryAfter(l, t, 0, 0))
	case AlgorithmSlidingLog, AlgorithmConcurrency:
		switch {
		case t > l.capacity:
			return Never
		case t <= s.Remaining():
			return 0
		}
		return s.FullAfter()
	}
	v, now := s.Verdict()
	return duration(l.decide(v, t, 0, now))
}
