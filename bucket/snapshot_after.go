// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"math/bits"
	"time"
)

// After returns the snapshot of the bucket after d more time, if nothing is taken. A denied cost becomes
// allowed after its RetryAfter; an admitted cost stays admitted. After rounds d down to whole microseconds, and
// returns s for less than one.
//
// Some facts are not in a snapshot and make After inexact. It does not know the entries of a sliding log, and
// shows them as spent until all have expired. It treats slots in the same way. After a lowered capacity, it may show a
// missing amount too early.
func (s Snapshot) After(d time.Duration) Snapshot {
	us := int64(d / time.Microsecond)
	if us <= 0 {
		return s
	}
	s.penaltyAfter(us)
	if retry := s.retryAfter(); retry > 0 && retry < endless {
		s.RetryAfter, s.beyond = capWait(max(retry-us, 0))
		s.Allowed = s.RetryAfter == 0
	}
	l, now := &s.Limit, s.at-Instant(s.behind-us)
	switch l.Algorithm() {
	case AlgorithmContinuous:
		spent, at := l.refillOwn(s.spent, Instant(s.behind), Instant(us))
		s.spent, s.behind = spent, int64(at)-us
	case AlgorithmConcurrency:
		if s.behind, s.prev = max(s.behind-us, 0), max(s.prev-us, 0); s.prev == 0 {
			s.spent, s.behind = 0, 0
		}
	case AlgorithmSlidingLog:
		if s.spent > 0 && us-s.behind < l.p {
			s.behind -= us
			break
		}
		s.spent, s.behind = 0, max(s.behind-us, 0)
	default:
		s.advance(us)
	}
	if l.n != 0 {
		s.at = now + Instant(s.behind)
	}
	return s
}

func (s *Snapshot) advance(us int64) {
	l := &s.Limit
	if l.hasCalendar() {
		now := s.at - Instant(s.behind-us)
		spent, at := l.refillCalendar(&State{Spent: s.spent, AsOf: s.at, Unit: 1}, now)
		s.spent, s.behind = spent, int64(at-now)
		return
	}
	if s.spent == 0 && l.Anchor() == AnchorFirst {
		s.behind = max(s.behind-us, 0) // no interval has started
		return
	}
	passed := max(us-s.behind, 0) / l.p
	s.behind += passed*l.p - us
	switch {
	case passed == 0:
	case l.Algorithm() == AlgorithmSlidingWindow:
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
