// SPDX-License-Identifier: Apache-2.0

package bucket

import "math"

// Share returns the limit of one of n nodes with local buckets while the shared bucket is unreachable.
// Capacity, rate, max reserved and queue are divided by n and rounded down, so that the nodes together admit at
// most as much as l.
//
// A node admits a cost of least if l admits it: otherwise a node could deny an expensive request forever. If
// least exceeds the node's part of the capacity, the nodes together exceed l's capacity by that difference per node.
// An interval of a stepped limit adds at least a thousandth, and a sliding limit's window holds its capacity. A node of a
// concurrency limit has at least one slot.
//
// Share returns l for n ≤ 1.
func (l Limit) Share(n int, least Tokens) Limit {
	if n <= 1 || l.n == 0 {
		return l
	}
	s, parts := l, int64(n)
	s.capacity = min(l.capacity, max(l.capacity/Tokens(n), least))
	switch l.Algorithm() {
	case AlgorithmContinuous:
		s.n, s.p = divideRate(l.n, l.p, parts)
		s.capacity = min(s.capacity, Tokens(maxUnits/s.p))
	case AlgorithmStepped:
		s.n = max(l.n/parts, 1)
	case AlgorithmConcurrency:
		s.capacity = max(s.capacity-s.capacity%Token, Token)
		s.n = int64(s.capacity)
	default:
		s.capacity = max(s.capacity, 1)
		s.n = int64(s.capacity)
	}
	s.debt = l.shareOfDebt(&s, parts, least)
	return s
}

func (l *Limit) shareOfDebt(s *Limit, parts int64, least Tokens) Tokens {
	whole, most := Tokens(maxUnits/max(l.Unit(), 1)), Tokens(maxUnits/max(s.Unit(), 1))
	if l.Unit() < 0 || l.Algorithm() == AlgorithmSlidingLog {
		whole, most = MaxWindowTokens, MaxWindowTokens
	}
	if l.debt == whole-l.capacity { // bounded only by the arithmetic
		return most - s.capacity
	}
	debt := l.debt / Tokens(parts)
	if l.Queued() { // a queue counts as admitted at once
		debt = min(max(debt, least-s.capacity), l.debt)
	}
	return min(debt, most-s.capacity)
}

func divideRate(n, p, parts int64) (int64, int64) {
	common := gcd(n, parts)
	if parts /= common; p > math.MaxInt64/parts || p*parts > maxUnits {
		return 1, maxUnits // too slow to represent: a bucket of at most a thousandth
	}
	return n / common, p * parts
}

// Missing returns the difference to the capacity, including an admitted cost, rounded up to a thousandth. It
// exceeds the capacity while the bucket is in debt.
func (s Snapshot) Missing() Tokens {
	switch l := &s.Limit; {
	case s.spent == 0 || l.n == 0:
		return 0
	case l.Algorithm() == AlgorithmContinuous:
		return Tokens(ceilDiv(s.spent, l.p))
	case l.Algorithm() == AlgorithmSlidingWindow:
		return Tokens(s.window().missingAt(l, 0))
	}
	return Tokens(s.spent)
}

// Debt returns the debt of the bucket, including an admitted cost: tokens that were reserved, charged in
// advance, or wait in a queue. It is rounded up to a thousandth, and 0 if [Snapshot.Remaining] is above 0.
func (s Snapshot) Debt() Tokens {
	if s.Limit.Algorithm() == AlgorithmConcurrency { // more slots than a lowered limit has are no debt
		return 0
	}
	return max(s.Missing()-s.Limit.capacity, 0)
}

// State returns the state that s shows, converted to a clock that reads now. A sliding log becomes one entry at
// its newest instant.
func (s Snapshot) State(now Instant) State {
	switch {
	case s.Limit.Algorithm() == AlgorithmConcurrency:
		return State{Spent: s.spent, AsOf: now + Instant(s.prev), Unit: 1}
	case s.Limit.hasCalendar(): // window starts are the same by all clocks
		now = s.at - Instant(s.behind)
	}
	return State{Spent: s.spent, AsOf: now + Instant(s.behind), Unit: s.Limit.Unit(), Prev: s.prev}
}
