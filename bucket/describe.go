// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"fmt"
	"math/bits"
	"time"
)

// Capacity is the most a bucket of this limit holds.
func (l Limit) Capacity() Tokens { return l.capacity }

// MaxReserved is the most that reservations and charges may owe.
func (l Limit) MaxReserved() Tokens { return l.debt }

// Refill returns the rate: n thousandths every p microseconds, in lowest terms
// where the bucket refills continuously; else a whole interval's tokens and the
// interval, or a window's and the window. Both are 0 in the zero Limit only.
func (l Limit) Refill() (n Tokens, p int64) { return Tokens(l.n), l.p }

// Rate returns what [Limit.Refill] does as people say it: of a continuous bucket, in
// the shortest round period that makes it whole thousandths, where there is one.
func (l Limit) Rate() Rate { return l.rate() }

// Start is how long after the Unix epoch the intervals of a [Stepped] limit begin,
// and 0 of all others: see [Spec.Start] and [Limit.For].
func (l Limit) Start() time.Duration { return time.Duration(l.start()) * time.Microsecond }

// TimeFor is how long the limit needs to give back t, rounded up to a
// microsecond: in whole intervals where it is stepped, on average where it is
// sliding. It is [Never] for the zero Limit and for more than any bucket can
// hold or owe (t·p from 2^53 on, where the limit is continuous), and else at most
// [Longest].
func (l Limit) TimeFor(t Tokens) time.Duration {
	switch {
	case t <= 0:
		return 0
	case l.n == 0 || t > MaxTokens:
		return Never
	case l.Algorithm() == Stepped:
		return duration(l.after(int64(t), 0))
	case l.how&howAlgorithm != 0:
		hi, lo := bits.Mul64(uint64(t), uint64(l.p))
		if hi >= uint64(l.n) {
			return Never
		}
		q, r := bits.Div64(hi, lo, uint64(l.n))
		if q += min(r, 1); q > maxUnits {
			return Never
		}
		return duration(int64(q))
	case l.p > maxUnits/int64(t):
		return Never
	}
	return duration(ceilDiv(int64(t)*l.p, l.n))
}

// String formats l for people: "capacity 20, refill 10/1s".
func (l Limit) String() string {
	text := ""
	switch r := l.rate(); l.Algorithm() {
	case Continuous:
		text = fmt.Sprintf("capacity %v, refill %v", l.capacity, r)
	case Stepped:
		text = fmt.Sprintf("capacity %v, refill %v every %v", l.capacity, r.Tokens, r.Per)
	default:
		return fmt.Sprintf("%v in any %v (%v)", r.Tokens, r.Per, l.Algorithm())
	}
	if l.Queued() {
		text += fmt.Sprintf(", queue %v", l.debt)
	}
	return text
}

// rate is the refill: of a continuous bucket, in the shortest round period that
// makes it whole thousandths, and else as it is.
func (l *Limit) rate() Rate {
	for _, per := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		us := per.Microseconds()
		if l.how&howAlgorithm == 0 && l.p != 0 && us%l.p == 0 && l.n <= int64(MaxTokens)/(us/l.p) {
			return Rate{Tokens: Tokens(l.n * (us / l.p)), Per: per}
		}
	}
	return Rate{Tokens: Tokens(l.n), Per: time.Duration(l.p) * time.Microsecond}
}
