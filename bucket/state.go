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

// A State is what one bucket remembers. The zero State is a full bucket, so a
// missing row, an expired key and a new entry need no special case.
//
// A State is a value; whoever keeps it decides who may change it when.
type State struct {
	// Spent is what is missing from full at AsOf, in units of 1/Unit thousandth
	// of a token. Invariant: 0 ≤ Spent < 2^53.
	Spent int64

	// AsOf is the instant Spent is true of. Invariant: it never decreases.
	AsOf Instant

	// Unit is the limit's p when Spent was written. A limit with another p
	// converts what is missing, rounded up to a thousandth of a token.
	Unit int64
}

// Never is the wait of a cost that no wait can make room for.
const Never time.Duration = math.MaxInt64

// refill returns what is missing at now, in units of 1/p, and the instant that
// is true of: now, or the state's own where that is later.
//
// A state written under another unit keeps what was missing, at most a whole
// capacity of the new limit (a raised limit gives the difference at once, a
// lowered one leaves the bucket at most empty). Under the same unit it may be
// more, where the limit allows a debt: a State cannot tell a lowered capacity
// from a reservation.
func (l *Limit) refill(s *State, now Instant) (spent int64, at Instant) {
	spent, at = s.Spent, max(now, s.AsOf)
	if spent == 0 || l.n == 0 {
		return 0, at // full; and the zero Limit holds nothing that could be missing
	}
	if s.Unit != l.p {
		spent = l.convert(*s)
	}
	// Only a backward or equal instant leaves nothing to refill. The product is
	// compared before it is used: it may exceed 64 bits.
	hi, lo := bits.Mul64(uint64(at-s.AsOf), uint64(l.n))
	if hi != 0 || lo >= uint64(spent) {
		return 0, at
	}
	return min(spent-int64(lo), int64(l.capacity+l.debt)*l.p), at
}

// convert returns s.Spent in l's units. A State without a unit (never written
// by this package) counts thousandths.
func (l *Limit) convert(s State) int64 {
	missing := ceilDiv(s.Spent, max(s.Unit, 1))
	return min(missing, int64(l.capacity)) * l.p
}

// Full reports whether the bucket is full at now: then its state may be
// forgotten, and nobody can tell.
func (l Limit) Full(s State, now Instant) bool {
	spent, _ := l.refill(&s, now)
	return spent == 0
}

// ceilDiv returns ⌈a/b⌉ for a ≥ 0, b > 0, without leaving the range of a.
func ceilDiv(a, b int64) int64 {
	if a == 0 {
		return 0
	}
	return (a-1)/b + 1
}

// micros returns a+b microseconds as a duration. Both are at least 0; a b that
// is not is a difference that left the range of int64. What does not fit is
// shown as the longest duration below [Never]: 292 years.
func micros(a, b int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Microsecond)
	if b < 0 || b > most-min(a, most) {
		return time.Duration(most) * time.Microsecond
	}
	return time.Duration(a+b) * time.Microsecond
}
