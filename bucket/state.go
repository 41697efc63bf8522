// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"math"
	"math/bits"
	"time"
)

// An Instant is a point in time: microseconds since the Unix epoch, the grain
// of Redis' TIME and of PostgreSQL's timestamptz. Instants before the epoch are
// taken as the epoch; those from 2^53 on (the year 2255) are not exact in every
// store.
type Instant int64

// At returns the instant of t, cut to whole microseconds.
func At(t time.Time) Instant { return Instant(t.UnixMicro()) }

// Time returns i as a time in UTC.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// Add returns i moved by d, cut to whole microseconds.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d/time.Microsecond) }

// A State is one bucket under one limit. The zero State is a full bucket, so a
// missing row, an expired key and a new entry need no special case. A store keeps
// a [Row] of them: one for each version of the limit that is in use.
//
// A State is a value; its owner serializes changes.
type State struct {
	// Spent is what is missing from full at AsOf, in units of 1/Unit thousandth
	// of a token. Invariant: 0 ≤ Spent < 2^53, and 0 means full.
	//
	// Of a sliding window it is what was spent in the window and in the one
	// before; of a sliding log, what its entries add up to. Both in thousandths.
	Spent int64

	// AsOf is the instant Spent is true of: for stepped buckets the beginning of
	// an interval, for a sliding window its own, for a sliding log that of the
	// newest entry. Invariant: while anything is missing it never decreases, but
	// where a cancellation removes the newest entry of a log.
	AsOf Instant

	// Unit is the limit's p when Spent was written, 1 where that was stepped or a
	// sliding log, and minus the length of a sliding window in microseconds. A
	// limit that reads a State of another unit converts what is missing, rounded up
	// to a thousandth of a token and at most its capacity: that is for a look at a
	// State whose limit is not known. A [Row] knows it, and converts nothing.
	Unit int64

	// Prev is the part of Spent that belongs to the window before, and 0 where
	// the limit is no sliding window.
	Prev int64

	// Log are the entries of a sliding log, and nil elsewhere.
	Log *Log
}

// Never is the wait of a cost that no wait can make room for.
const Never time.Duration = math.MaxInt64

// Longest is the longest wait below [Never]: 2^53 − 1 microseconds, 285 years. A longer
// wait is shown as Longest, and a longer maxWait counts as Longest. Every store does the
// same, because a double is not exact beyond.
const Longest = maxUnits * time.Microsecond

// refill returns what is missing at now, in units of 1/p, and the instant that
// is true of: now, or the state's own where that is later.
//
// A state written under another unit keeps what was missing, at most a whole
// capacity of the new limit (a raised limit gives the difference at once, a
// lowered one leaves the bucket at most empty). Under the same unit it may be
// more, where the limit allows a debt: a State cannot tell a lowered capacity
// from a reservation.
func (l *Limit) refill(s *State, now Instant) (spent int64, at Instant) {
	spent = s.Spent
	if spent != 0 && l.n != 0 && s.Unit != l.p {
		spent = l.convert(*s)
	}
	return l.own(spent, s.AsOf, now)
}

// own is refill for a state of the limit's own unit.
func (l *Limit) own(spent int64, asOf, now Instant) (int64, Instant) {
	at := max(now, asOf)
	if spent == 0 || l.n == 0 {
		return 0, at // full; and the zero Limit holds nothing that could be missing
	}
	// Only a backward or equal instant leaves nothing to refill. The product is
	// compared before it is used: it may exceed 64 bits.
	hi, lo := bits.Mul64(uint64(at-asOf), uint64(l.n))
	if hi != 0 || lo >= uint64(spent) {
		return 0, at
	}
	return min(spent-int64(lo), int64(l.capacity+l.debt)*l.p), at
}

// convert returns s.Spent in l's units. A State without a unit (never written
// by this package), a window and a log count thousandths.
func (l *Limit) convert(s State) int64 {
	missing := ceilDiv(s.Spent, max(s.Unit, 1))
	return min(missing, int64(l.capacity)) * l.p
}

// Full reports whether the bucket is full at now: then its state may be
// forgotten, and nobody can tell.
func (l Limit) Full(s State, now Instant) bool {
	v := l.look(&s, now)
	return v.spent == 0
}

// look returns what a bucket holds at now, as a verdict without a decision.
func (l *Limit) look(s *State, now Instant) Verdict {
	switch l.Algorithm() {
	case Continuous:
		spent, at := l.refill(s, now)
		return Verdict{spent: spent, behind: int64(at - now)}
	case Stepped:
		spent, at := l.step(s, now)
		return Verdict{spent: spent, behind: int64(at - now)}
	case SlidingWindow:
		w := l.slide(s, now)
		return Verdict{spent: w.cur + w.prev, prev: w.prev, behind: int64(w.start - now)}
	}
	return l.entries(s).look(l, now)
}

// ceilDiv returns ⌈a/b⌉ for a ≥ 0, b > 0, without leaving the range of a.
func ceilDiv(a, b int64) int64 {
	if a == 0 {
		return 0
	}
	return (a-1)/b + 1
}

// after is how many microseconds it takes until lack units have come back to a
// bucket. Its instant lies behind microseconds after the caller's.
func (l *Limit) after(lack, behind int64) int64 {
	times := ceilDiv(lack, l.n)
	if l.how&howAlgorithm != 0 {
		return sum(product(times, l.p), behind)
	}
	return sum(times, behind)
}

// Waits are calculated in microseconds, and cut to [Longest] only where they are shown.
const (
	never = math.MaxInt64 // shown as Never

	// endless stands for all longer waits but never: 146 000 years.
	endless = 1 << 62
)

// product returns a·b for a, b ≥ 0, at most endless.
func product(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > endless {
		return endless
	}
	return int64(lo)
}

// sum returns a+b for 0 ≤ a ≤ endless, at most endless. A negative sum counts as endless,
// too: the difference b left the range of int64, at an instant far before the epoch.
func sum(a, b int64) int64 {
	if s := a + b; s >= 0 && s < endless {
		return s
	}
	return endless
}

// shown returns a wait as people see it, and by how much that is too short.
func shown(us int64) (d time.Duration, beyond int64) {
	switch {
	case us <= maxUnits:
		return time.Duration(us) * time.Microsecond, 0
	case us == never:
		return Never, 0
	}
	return Longest, us - maxUnits
}

// duration returns a wait as people see it.
func duration(us int64) time.Duration {
	d, _ := shown(us)
	return d
}
