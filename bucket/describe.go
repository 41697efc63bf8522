// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"fmt"
	"math/bits"
	"time"
)

// Capacity returns the largest amount that a bucket of this limit holds.
func (l Limit) Capacity() Tokens { return l.capacity }

// MaxReserved returns the largest debt from reservations and charges.
func (l Limit) MaxReserved() Tokens { return l.debt }

// Refill returns the rate: n thousandths every p microseconds. The fraction is in lowest terms if the bucket
// refills continuously. Otherwise p is the interval, window or lease. Both are 0 only for the zero Limit.
func (l Limit) Refill() (n Tokens, p int64) { return Tokens(l.n), l.p }

// Rate returns the rate for display. A continuous rate uses the shortest of second, minute, hour and day that
// yields whole thousandths, if there is one.
func (l Limit) Rate() Rate { return l.rate() }

// Start returns the offset of an [AlgorithmStepped] limit's intervals from the Unix epoch, and 0 for other limits: see
// [Spec.Start] and [Limit.ForKey].
func (l Limit) Start() time.Duration {
	if l.hasCalendar() {
		return 0
	}
	return time.Duration(l.start()) * time.Microsecond
}

// TimeFor returns the time in which the limit refills t, rounded up to a microsecond and at most [LongestWait].
// Stepped limits count whole intervals. A window of a calendar counts with its mean length. Sliding limits use their
// average rate, and a concurrency limit its lease. The result is [Never] for the zero Limit and for amounts that no
// bucket can hold or owe.
func (l Limit) TimeFor(t Tokens) time.Duration {
	switch {
	case t <= 0:
		return 0
	case l.n == 0 || t > MaxTokens:
		return Never
	case l.Algorithm() == AlgorithmStepped:
		return duration(saturatingMul(ceilDiv(int64(t), l.n), l.p))
	case l.Algorithm() == AlgorithmConcurrency:
		return duration(l.p)
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

// String formats l for display: "capacity 20, refill 10/1s".
func (l Limit) String() string {
	text := ""
	switch r := l.rate(); l.Algorithm() {
	case AlgorithmContinuous:
		text = fmt.Sprintf("capacity %v, refill %v", l.capacity, r)
	case AlgorithmStepped:
		text = fmt.Sprintf("capacity %v, refill %v every %v", l.capacity, r.Tokens, r.Per)
		if c, ok := l.Calendar(); ok {
			text = fmt.Sprintf("capacity %v, refill %v every %v", l.capacity, r.Tokens, c)
		}
	case AlgorithmConcurrency:
		return fmt.Sprintf("%v slots, lease %v", r.Tokens, r.Per)
	default:
		return fmt.Sprintf("%v in any %v (%v)", r.Tokens, r.Per, l.Algorithm())
	}
	if l.Queued() {
		text += fmt.Sprintf(", queue %v", l.debt)
	}
	return text
}

func (l *Limit) rate() Rate {
	for _, per := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		us := per.Microseconds()
		if l.how&howAlgorithm == 0 && l.p != 0 && us%l.p == 0 && l.n <= int64(MaxTokens)/(us/l.p) {
			return Rate{Tokens: Tokens(l.n * (us / l.p)), Per: per}
		}
	}
	return Rate{Tokens: Tokens(l.n), Per: time.Duration(l.p) * time.Microsecond}
}
