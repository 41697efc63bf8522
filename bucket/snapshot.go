// SPDX-License-Identifier: Apache-2.0

package bucket

import "time"

// A Snapshot is the state of one bucket at one instant, and the decision about one cost. Durations count from
// the caller's instant. It is a value.
type Snapshot struct {
	Limit Limit

	// Cost is the requested cost. It was spent if Allowed is true.
	Cost Tokens

	// Allowed reports whether this bucket admitted the cost.
	Allowed bool

	// Spill reports the effect of a full store on this bucket. The zero value is none.
	Spill Spill

	// RetryAfter is 0 if the cost was admitted. Otherwise the cost is admitted after exactly this time if
	// nothing else is taken, and a microsecond earlier it is denied. Under a concurrency limit it is admitted earlier if a
	// request releases its slot. It is [Never] for a cost that can never be
	// admitted, and otherwise at most [LongestWait].
	RetryAfter time.Duration

	spent   int64 // as in State, at the bucket's instant
	prev    int64
	behind  int64   // from the caller's instant to the bucket's, in µs.
	at      Instant // the bucket's instant, by the store's clock.
	beyond  int64   // the part of the wait above LongestWait, in µs.
	penalty int64   // the rest of the penalty in µs, and its level: see Penalize
}

// Verdict returns the verdict that s shows, and the instant of the decision.
func (s Snapshot) Verdict() (Verdict, Instant) {
	return Verdict{s.retryAfter(), s.spent, s.prev, s.behind}, s.at - Instant(s.behind)
}

// Remaining returns the available tokens after an admitted cost, rounded down to a thousandth and never below
// 0. It is 0 during a penalty. For display, use [Tokens.Whole] of it.
func (s Snapshot) Remaining() Tokens { return s.remaining() }

func (s *Snapshot) remaining() Tokens {
	if s.penalty != 0 {
		return 0
	}
	if s.spent == 0 {
		return s.Limit.capacity
	}
	missing := s.spent
	switch s.Limit.Algorithm() {
	case AlgorithmContinuous:
		missing = ceilDiv(s.spent, s.Limit.p)
	case AlgorithmSlidingWindow:
		missing = s.window().missingAt(&s.Limit, 0)
	}
	return max(s.Limit.capacity-Tokens(missing), 0)
}

// FullAfter returns the time until the bucket is full if nothing else is taken, rounded up to a microsecond and
// at most [LongestWait]. It is the time to live of a stored state, and at least the rest of a penalty.
func (s Snapshot) FullAfter() time.Duration { return duration(max(s.fullAfter(), s.penaltyLeft())) }

func (s *Snapshot) fullAfter() int64 {
	switch l := &s.Limit; {
	case s.spent == 0:
		return 0
	case l.Algorithm() == AlgorithmConcurrency:
		return s.prev
	case l.Algorithm() == AlgorithmSlidingWindow && s.spent > s.prev:
		return saturatingAdd(2*l.p, s.behind)
	case l.Algorithm() >= AlgorithmSlidingWindow: // also for logs: one window after the newest entry
		return saturatingAdd(l.p, s.behind)
	}
	return s.refillTime(s.spent)
}

func (s *Snapshot) retryAfter() int64 {
	switch s.RetryAfter {
	case Never:
		return never
	case LongestWait:
		return maxUnits + s.beyond
	}
	us := int64(s.RetryAfter / time.Microsecond)
	if s.RetryAfter%time.Microsecond > 0 {
		us++
	}
	return us
}

// Wait returns how long an admitted reservation must wait until the bucket has no debt. It is 0 if the tokens
// were available, and at most [LongestWait]. Sliding limits have debt only after [Forced] costs. For a log, Wait is
// then the time until the log is empty.
func (s Snapshot) Wait() time.Duration { return duration(s.wait()) }

func (s *Snapshot) wait() int64 {
	l := &s.Limit
	if !s.Allowed {
		return 0
	}
	switch l.Algorithm() {
	case AlgorithmSlidingWindow:
		return s.window().retryAfter(l, 0, 0, 0)
	case AlgorithmSlidingLog:
		if s.spent <= int64(l.capacity) {
			return 0
		}
		return s.fullAfter()
	case AlgorithmConcurrency:
		return 0
	}
	owed := s.spent - int64(l.capacity)*l.Unit()
	if owed <= 0 {
		return 0
	}
	return s.refillTime(owed)
}

// window returns the sliding window of s, with the caller's instant at 0.
func (s *Snapshot) window() window {
	return window{start: Instant(s.behind), prev: s.prev, cur: s.spent - s.prev}
}
