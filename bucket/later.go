// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"math/bits"
	"time"
)

// Later returns what the bucket looks like d later, if nothing happens to it but
// time: a denied cost is shown as the limit would answer it then, with
// RetryAfter shorter by d, and is admitted from RetryAfter on. What was decided
// to admit stays admitted. d is cut to whole microseconds, and one below shows s
// itself.
//
// It is exact but for two things that are not in a snapshot. Which costs leave a
// sliding log when: until all are gone, what remains is shown as if none were,
// which is never too much. And what a limit that was lowered to less than is
// missing does not count yet: it is missing later, which is shown too early.
func (s Snapshot) Later(d time.Duration) Snapshot {
	us := int64(d / time.Microsecond)
	if us <= 0 {
		return s
	}
	if retry := s.retry(); retry > 0 && retry < endless {
		s.RetryAfter, s.beyond = shown(max(retry-us, 0))
		s.Allowed = s.RetryAfter == 0
	}
	l, now := &s.Limit, s.at-Instant(s.behind-us)
	switch l.Algorithm() {
	case Continuous:
		spent, at := l.own(s.spent, Instant(s.behind), Instant(us))
		s.spent, s.behind = spent, int64(at)-us
	case SlidingLog:
		if s.spent > 0 && us-s.behind < l.p {
			s.behind -= us
			break
		}
		s.spent, s.behind = 0, max(s.behind-us, 0)
	default:
		s.pass(us)
	}
	if l.n != 0 {
		s.at = now + Instant(s.behind)
	}
	return s
}

// pass moves a stepped bucket or a sliding window on by us microseconds: its
// intervals follow on the one that it is shown in.
func (s *Snapshot) pass(us int64) {
	l := &s.Limit
	if s.spent == 0 && l.Anchor() == AnchorFirst {
		s.behind = max(s.behind-us, 0) // no interval has begun
		return
	}
	passed := max(us-s.behind, 0) / l.p
	s.behind += passed*l.p - us
	switch {
	case passed == 0:
	case l.Algorithm() == SlidingWindow:
		if s.spent -= s.prev; passed > 1 {
			s.spent = 0
		}
		s.prev = s.spent
	default:
		if hi, lo := bits.Mul64(uint64(passed), uint64(l.n)); hi == 0 && lo < uint64(s.spent) {
			s.spent -= int64(lo)
			break
		}
		if s.spent = 0; l.Anchor() == AnchorFirst {
			s.behind = 0
		}
	}
}
