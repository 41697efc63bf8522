// SPDX-License-Identifier: Apache-2.0

package bucket

// WithCost returns s after the cost that it admits. It turns a snapshot of [Limit.Peek] into the one of
// [Limit.Reserve] at the same instant. For a denied cost it returns s.
func (s Snapshot) WithCost() Snapshot {
	if !s.Allowed || s.Cost <= 0 {
		return s
	}
	switch s.Limit.Algorithm() {
	case AlgorithmContinuous:
		s.spent += int64(s.Cost) * s.Limit.p
	case AlgorithmSlidingLog:
		s.spent += int64(s.Cost)
		s.at += Instant(max(s.behind, 0) - s.behind)
		s.behind = max(s.behind, 0) // the cost becomes the newest entry
	case AlgorithmConcurrency:
		next := s.Limit.p
		if s.spent > 0 {
			next = min(s.behind, next)
		}
		s.at += Instant(next - s.behind)
		s.behind, s.prev = next, max(s.prev, s.Limit.p)
		s.spent += int64(s.Cost)
	default:
		s.spent += int64(s.Cost)
	}
	return s
}
