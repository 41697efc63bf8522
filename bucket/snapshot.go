// SPDX-License-Identifier: Apache-2.0

package bucket

import "time"

// A Snapshot shows one bucket at one instant, and what was decided about one
// cost. Its durations count from the caller's instant. It is a value.
type Snapshot struct {
	// Limit is the limit that was applied.
	Limit Limit

	// Cost is what was asked for, and what was spent where it was admitted.
	Cost Tokens

	// Allowed says whether this bucket admitted the cost.
	Allowed bool

	// RetryAfter is 0 where the cost was admitted, and else how long the caller
	// must wait: alone, it is admitted after exactly that long and denied a
	// microsecond earlier. It is [Never] for a cost that can never be admitted, and at
	// most [Longest] for others.
	RetryAfter time.Duration

	spent  int64 // as in State, at the bucket's instant
	prev   int64
	behind int64   // how far that lies after the caller's instant, in µs
	at     Instant // the bucket's instant, by the clock of the store that decided
	beyond int64   // by how much a RetryAfter of Longest is too short, in µs
	_      int64   // a copy of a multiple of 16 bytes is faster: BenchmarkPeek
}

// Verdict returns s in brief, and the instant at which it was decided.
func (s Snapshot) Verdict() (Verdict, Instant) {
	return Verdict{s.retry(), s.spent, s.prev, s.behind}, s.at - Instant(s.behind)
}

// Remaining is what the bucket holds, after the cost where it was taken: rounded
// down to a thousandth, never below 0. Show people [Tokens.Whole] of it.
func (s Snapshot) Remaining() Tokens { return s.remaining() }

// remaining is Remaining without a copy of s.
func (s *Snapshot) remaining() Tokens {
	if s.spent == 0 {
		return s.Limit.capacity
	}
	missing := s.spent
	switch s.Limit.Algorithm() {
	case Continuous:
		missing = ceilDiv(s.spent, s.Limit.p)
	case SlidingWindow:
		missing = s.window().missing(&s.Limit, 0)
	}
	return max(s.Limit.capacity-Tokens(missing), 0)
}

// FullAfter is how long it takes until the bucket is full if nothing more is
// taken, rounded up to a microsecond. It is the time to live of a stored state, and
// at most [Longest].
func (s Snapshot) FullAfter() time.Duration { return duration(s.fullAfter()) }

// fullAfter is FullAfter in microseconds.
func (s *Snapshot) fullAfter() int64 {
	switch l := &s.Limit; {
	case s.spent == 0:
		return 0
	case l.Algorithm() == SlidingWindow && s.spent > s.prev:
		return sum(2*l.p, s.behind)
	case l.Algorithm() >= SlidingWindow: // one window after the newest entry, too
		return sum(l.p, s.behind)
	}
	return s.Limit.after(s.spent, s.behind)
}

// retry is RetryAfter in microseconds, rounded up.
func (s *Snapshot) retry() int64 {
	switch s.RetryAfter {
	case Never:
		return never
	case Longest:
		return maxUnits + s.beyond
	}
	us := int64(s.RetryAfter / time.Microsecond)
	if s.RetryAfter%time.Microsecond > 0 {
		us++
	}
	return us
}

// Wait is how long the work of an admitted reservation has to wait: until the
// bucket owes nothing. It is 0 for tokens that were there. Sliding limits owe
// only what was [Forced] on them: of a log, Wait is then how long until nothing
// at all is left of it. It is at most [Longest].
func (s Snapshot) Wait() time.Duration { return duration(s.wait()) }

// wait is Wait in microseconds.
func (s *Snapshot) wait() int64 {
	l := &s.Limit
	if !s.Allowed {
		return 0
	}
	switch l.Algorithm() {
	case SlidingWindow:
		return s.window().retry(l, 0, 0, 0)
	case SlidingLog:
		if s.spent <= int64(l.capacity) {
			return 0
		}
		return s.fullAfter()
	}
	owed := s.spent - int64(l.capacity)*l.Unit()
	if owed <= 0 {
		return 0
	}
	return l.after(owed, s.behind)
}

// window is the sliding window that s shows, with the caller's instant at 0.
func (s *Snapshot) window() window {
	return window{start: Instant(s.behind), prev: s.prev, cur: s.spent - s.prev}
}
