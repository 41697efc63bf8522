// SPDX-License-Identifier: Apache-2.0

package bucket

import "time"

// Room is what a plain take would be admitted for: what remains and, where the
// limit has a queue, the room that is left in it. It is rounded down to a
// thousandth. Decisions ask it of each limit, so it takes no copy of s.
func (s *Snapshot) Room() Tokens {
	l := &s.Limit
	if !l.Queued() {
		return s.remaining()
	}
	return max(l.capacity+l.debt-Tokens(ceilDiv(s.spent, l.Unit())), 0)
}

// RoomAfter is how long it takes until there is [Snapshot.Room] for t, if nothing
// more is taken: 0 where there is, and [Never] where the limit is below t. Which
// costs leave a sliding log when is not in a snapshot: of one, it is
// [Snapshot.FullAfter], which may be longer.
func (s Snapshot) RoomAfter(t Tokens) time.Duration {
	l := &s.Limit
	switch l.Algorithm() {
	case SlidingWindow:
		return duration(s.window().retry(l, t, 0, 0))
	case SlidingLog:
		switch {
		case t > l.capacity:
			return Never
		case t <= s.Remaining():
			return 0
		}
		return s.FullAfter()
	}
	v, _ := s.Verdict()
	return duration(l.decide(v, t, 0))
}
