// SPDX-License-Identifier: Apache-2.0

package bucket

import "math"

// Share returns the limit of one of n nodes, each of which keeps a bucket of its
// own because the one that they share cannot be reached: an n'th of capacity,
// rate and max reserved or queue, rounded down, so that together they admit no
// more than l does.
//
// What a node admits at once is at least least, as far as l admits that: a bucket
// that never holds what a request costs would shut it out for good. Where that is
// more than an n'th of the capacity, the nodes together exceed that of l by the
// difference for each. An interval of a stepped limit brings at least a
// thousandth, and a sliding limit allows as much in a window as it admits at once.
//
// With an n of 1 or less it is l.
func (l Limit) Share(n int, least Tokens) Limit {
	if n <= 1 || l.n == 0 {
		return l
	}
	s, parts := l, int64(n)
	s.capacity = min(l.capacity, max(l.capacity/Tokens(n), least))
	switch l.Algorithm() {
	case Continuous:
		s.n, s.p = slower(l.n, l.p, parts)
		s.capacity = min(s.capacity, Tokens(maxUnits/s.p))
	case Stepped:
		s.n = max(l.n/parts, 1)
	default:
		s.capacity = max(s.capacity, 1)
		s.n = int64(s.capacity)
	}
	s.debt = l.shareOfDebt(&s, parts, least)
	return s
}

// shareOfDebt is what a share s of l may owe.
func (l *Limit) shareOfDebt(s *Limit, parts int64, least Tokens) Tokens {
	whole, most := Tokens(maxUnits/max(l.Unit(), 1)), Tokens(maxUnits/max(s.Unit(), 1))
	if l.Unit() < 0 || l.Algorithm() == SlidingLog {
		whole, most = MaxWindowTokens, MaxWindowTokens
	}
	if l.debt == whole-l.capacity { // as much as fits
		return most - s.capacity
	}
	debt := l.debt / Tokens(parts)
	if l.Queued() { // it is part of what is admitted at once
		debt = min(max(debt, least-s.capacity), l.debt)
	}
	return min(debt, most-s.capacity)
}

// slower returns an n'th part of the rate of n every p, in lowest terms if that
// was.
func slower(n, p, parts int64) (int64, int64) {
	common := gcd(n, parts)
	if parts /= common; p > math.MaxInt64/parts || p*parts > maxUnits {
		return 1, maxUnits // one that holds a thousandth at most: see Share
	}
	return n / common, p * parts
}

// Missing is what the bucket is short of its capacity, after the cost where it was
// taken: rounded up to a thousandth. It is more than the capacity while something
// is owed.
func (s Snapshot) Missing() Tokens {
	switch l := &s.Limit; {
	case s.spent == 0 || l.n == 0:
		return 0
	case l.Algorithm() == Continuous:
		return Tokens(ceilDiv(s.spent, l.p))
	case l.Algorithm() == SlidingWindow:
		return Tokens(s.window().missing(l, 0))
	}
	return Tokens(s.spent)
}

// Owed is how much more than its capacity has been spent from the bucket, after the cost
// where it was taken: tokens that were reserved, charged in advance or wait in a queue. It
// is rounded up to a thousandth, and 0 where [Snapshot.Remaining] is above 0.
func (s Snapshot) Owed() Tokens { return max(s.Missing()-s.Limit.capacity, 0) }

// State returns the state of the bucket that s shows, by a clock that says now: to
// tell later, by that clock, what it would hold if nobody else had taken. Of a
// sliding log it counts all costs as if they had been the newest.
func (s Snapshot) State(now Instant) State {
	return State{Spent: s.spent, AsOf: now + Instant(s.behind), Unit: s.Limit.Unit(), Prev: s.prev}
}
