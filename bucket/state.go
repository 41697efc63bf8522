// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"math"
	"math/bits"
	"time"
)

// An Instant is a point in time in microseconds since the Unix epoch, the resolution of Redis' TIME and
// PostgreSQL's timestamptz. Instants before the epoch count as the epoch. Instants from 2^53 on (the year 2255)
// are inexact in some stores.
type Instant int64

// At returns the instant of t, rounded down to microseconds.
func At(t time.Time) Instant { return Instant(t.UnixMicro()) }

func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// Add returns i plus d, with d rounded toward zero to microseconds.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d/time.Microsecond) }

// A State is one bucket under one limit. The zero State is a full bucket, so a missing row and an expired key
// need no special case. A store keeps a [Row] of states, one per active version of the limit.
//
// A State is a value. Its owner serializes changes.
type State struct {
	// Spent is the missing amount at AsOf, in units of 1/Unit thousandth of a token. It is in [0, 2^53), and 0
	// means full.
	//
	// For a sliding window it is the count of the current and previous window, and for a sliding log the sum of
	// its entries. Both are in thousandths.
	Spent int64

	// AsOf is the instant of Spent. It is the start of an interval for stepped buckets, the start of the window
	// for sliding windows, and the newest entry for sliding logs. For concurrency limits it is the end of all slots. It never decreases while tokens are missing,
	// except when a cancellation removes the newest entry of a log.
	AsOf Instant

	// Unit is the limit's p for a continuous bucket, and 1 for a stepped one or a sliding log. For a sliding window
	// it is minus the window in microseconds. A limit converts a State with another unit. It rounds the missing
	// amount up to a thousandth and caps it at the capacity. Conversion serves states without a known limit. A [Row]
	// knows its limits and never converts.
	Unit int64

	// Prev is the part of Spent in the previous window of a sliding window, and 0 for other limits.
	Prev int64

	// Log holds the entries of a sliding log, and is nil otherwise.
	Log *Log

	// History serves the open holds of the bucket, and is nil without holds.
	History *History
}

// Never is the wait for a cost that is never admitted.
const Never time.Duration = math.MaxInt64

// LongestWait is the longest wait below [Never]: 2^53 − 1 microseconds, 285 years. Longer waits are
// reported as LongestWait, and a longer maxWait counts as LongestWait. All stores do the same, because doubles are
// inexact above it.
const LongestWait = maxUnits * time.Microsecond

// refill returns the missing amount in units of 1/p at now, or at the state's own instant if that is later.
//
// A state with another unit keeps its missing amount up to the new capacity. Raising a limit adds the difference
// immediately, and lowering it leaves the bucket at most empty. With the same unit, the amount may exceed the capacity if
// the limit allows debt. A State cannot tell a lowered capacity from a reservation.
func (l *Limit) refill(s *State, now Instant) (spent int64, at Instant) {
	spent = s.Spent
	if spent != 0 && l.n != 0 && s.Unit != l.p {
		spent = l.convert(*s)
	}
	return l.refillOwn(spent, s.AsOf, now)
}

// refillOwn is refill for a state in the limit's own unit.
func (l *Limit) refillOwn(spent int64, asOf, now Instant) (int64, Instant) {
	at := max(now, asOf)
	if spent == 0 || l.n == 0 {
		return 0, at // full, or the zero Limit, which holds nothing
	}
	// Compare before multiplying: the product may exceed 64 bits. An instant at or before asOf refills nothing.
	hi, lo := bits.Mul64(uint64(at-asOf), uint64(l.n))
	if hi != 0 || lo >= uint64(spent) {
		return 0, at
	}
	return min(spent-int64(lo), int64(l.capacity+l.debt)*l.p), at
}

// convert returns s.Spent in l's units. States without a unit, windows and logs count thousandths.
func (l *Limit) convert(s State) int64 {
	missing := ceilDiv(s.Spent, max(s.Unit, 1))
	return min(missing, int64(l.capacity)) * l.p
}

// Full reports whether the bucket is full at now. Evicting its state then changes no decision.
func (l Limit) Full(s State, now Instant) bool {
	v := l.verdictAt(&s, now)
	return v.spent == 0
}

// verdictAt returns the state of the bucket at now as a verdict without a decision.
func (l *Limit) verdictAt(s *State, now Instant) Verdict {
	switch l.Algorithm() {
	case AlgorithmContinuous:
		spent, at := l.refill(s, now)
		return Verdict{spent: spent, behind: int64(at - now)}
	case AlgorithmStepped:
		spent, at := l.refillStepped(s, now)
		return Verdict{spent: spent, behind: int64(at - now)}
	case AlgorithmSlidingWindow:
		w := l.windowAt(s, now)
		return Verdict{spent: w.cur + w.prev, prev: w.prev, behind: int64(w.start - now)}
	case AlgorithmConcurrency:
		return l.slotsAt(s, now)
	}
	return l.logOf(s).verdictAt(l, now)
}

// ceilDiv returns ⌈a/b⌉ for a ≥ 0, b > 0, without overflow.
func ceilDiv(a, b int64) int64 {
	if a == 0 {
		return 0
	}
	return (a-1)/b + 1
}

// refillTime returns the microseconds until the bucket of s has refilled lack units.
func (s *Snapshot) refillTime(lack int64) int64 {
	l, behind := &s.Limit, s.behind
	times := ceilDiv(lack, l.n)
	if l.hasCalendar() {
		return l.stepsAfter(s.at, s.at-Instant(behind), times)
	}
	if l.how&howAlgorithm != 0 {
		return saturatingAdd(saturatingMul(times, l.p), behind)
	}
	return saturatingAdd(times, behind)
}

// Waits are computed in microseconds and capped at [LongestWait] only for the result.
const (
	never = math.MaxInt64 // returned as Never

	// endless stands for all longer waits below never: 146,000 years.
	endless = 1 << 62
)

// saturatingMul returns min(a·b, endless) for a, b ≥ 0.
func saturatingMul(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > endless {
		return endless
	}
	return int64(lo)
}

// saturatingAdd returns min(a+b, endless) for 0 ≤ a ≤ endless. It also returns endless for a negative sum: b
// has then overflowed at an instant far before the epoch.
func saturatingAdd(a, b int64) int64 {
	if s := a + b; s >= 0 && s < endless {
		return s
	}
	return endless
}

func capWait(us int64) (d time.Duration, beyond int64) {
	switch {
	case us <= maxUnits:
		return time.Duration(us) * time.Microsecond, 0
	case us == never:
		return Never, 0
	}
	return LongestWait, us - maxUnits
}

func duration(us int64) time.Duration {
	d, _ := capWait(us)
	return d
}
