// SPDX-License-Identifier: Apache-2.0

package bucket

// With returns what the bucket would look like after the cost that it admits, for
// a snapshot of [Limit.Peek]: as [Limit.Reserve] would have shown it at the same
// instant. A denied cost changes nothing, and s is returned as it is.
func (s Snapshot) With() Snapshot {
	if !s.Allowed || s.Cost <= 0 {
		return s
	}
	switch s.Limit.Algorithm() {
	case Continuous:
		s.spent += int64(s.Cost) * s.Limit.p
	case SlidingLog:
		s.spent += int64(s.Cost)
		s.at += Instant(max(s.behind, 0) - s.behind)
		s.behind = max(s.behind, 0) // the newest entry is the cost
	default:
		s.spent += int64(s.Cost)
	}
	return s
}
