// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"errors"
	"fmt"
	"math/big"
	"time"
)

// maxUnits bounds every product of the arithmetic: integers below 2^53 are exact in Go, in SQL and in Lua's doubles.
const maxUnits = 1<<53 - 1

// maxRelativeError bounds the error of an approximated rate: the rate is lowered by a fraction of less than
// 1/maxRelativeError.
const maxRelativeError = 1_000_000_000

// Bounds of limits that are not continuous.
const (
	// MaxWindowTokens bounds the tokens of an [AlgorithmSlidingWindow] limit, so that its count in 4096ths stays below 2^53.
	MaxWindowTokens Tokens = 1<<41 - 1

	// maxWindowMicros bounds the window of a sliding limit: 4.4 years.
	maxWindowMicros = 1<<47 - 1

	// maxStepMicros bounds the interval of a stepped limit: 35 years.
	maxStepMicros = 1<<50 - 1

	// MaxLogTokens bounds the tokens of an [AlgorithmSlidingLog] limit, and therefore its entries with costs of at least
	// one token. Smaller costs could exceed [MaxLogEntries]. The log then merges its two newest entries at the
	// later instant.
	MaxLogTokens = MaxLogEntries * Token

	// MaxLogEntries bounds the entries of an [AlgorithmSlidingLog] bucket.
	MaxLogEntries = 10_000

	// MaxSlots bounds the slots of an [AlgorithmConcurrency] limit.
	MaxSlots = 10_000
)

// A Limit is a capacity and a refill rate, created by [NewLimit] or [Spec.Compile]. It is immutable, comparable
// with ==, and safe for concurrent use. The zero Limit denies every cost above 0.
type Limit struct {
	capacity Tokens
	debt     Tokens // largest debt
	n, p     int64  // n thousandths every p microseconds; in lowest terms if continuous
	how      uint64 // algorithm, anchor, queue and start or calendar: see howAlgorithm
}

// NewLimit returns the limit of a bucket with this capacity and refill rate. Use [Spec.Compile] to learn
// whether the rate was approximated.
func NewLimit(capacity Tokens, rate Rate) (Limit, error) {
	l, _, err := Spec{Capacity: capacity, Rate: rate}.Compile()
	return l, err
}

// A Spec describes a limit.
type Spec struct {
	// Algorithm selects how tokens return. The zero value is the token bucket, which refills all the time.
	Algorithm Algorithm

	// Capacity is the largest amount that a bucket holds. If a continuous bucket has capacity 0, every take is
	// a reservation. For the sliding algorithms and concurrency limits, Capacity must be 0 or Rate.Tokens.
	Capacity Tokens

	// Rate is the refill. For a concurrency limit, Rate.Tokens is the number of slots, in whole tokens, and Rate.Per the
	// lease of a slot.
	Rate Rate

	// MaxReserved bounds the debt of reservations and charges, in tokens. With nil, only the arithmetic bounds
	// the debt (2^53 units); 0 allows no debt. The sliding algorithms accept nil or 0. Concurrency limits
	// accept both, and never have debt.
	MaxReserved *Tokens

	// Queue turns a token bucket into a leaky bucket. A take that does not fit becomes a reservation that
	// starts after [Snapshot.Wait], if at most Queue tokens are waiting. With a Capacity of one token, work
	// starts evenly spaced. Do not set both Queue and MaxReserved.
	Queue Tokens

	// Anchor defines where the intervals of an [AlgorithmStepped] limit begin. Start offsets the intervals of AnchorEpoch,
	// and must be between 0 and the interval.
	Anchor Anchor
	Start  time.Duration

	// Calendar defines the intervals of AnchorCalendar. Rate.Per must then be [CalendarWindow.Length], and Rate.Tokens are
	// the tokens of one window.
	Calendar Calendar
}

// An Approximation reports that the arithmetic could not represent a rate together with its capacity. Compile
// then uses the closest lower rate, and rejects the limit if the error reaches one in a billion.
type Approximation struct {
	Asked Rate

	// The actual refill: Tokens every Micros microseconds.
	Tokens Tokens
	Micros int64

	// RelativeError is (asked − used) / asked, for display.
	RelativeError float64
}

// ErrLimit is wrapped by the errors of [Spec.Compile].
var ErrLimit = errors.New("bucket: invalid limit")

// Compile validates s and returns its limit. The report is nil if the rate is exact. The capacity must be at
// least 0, the rate above 0, and (capacity + max reserved)·p below 2^53. Here p is the number of microseconds
// in the rate's lowest terms, or 1 if the limit is stepped. Sliding limits hold at most [MaxWindowTokens] or
// [MaxLogTokens].
func (s Spec) Compile() (Limit, *Approximation, error) {
	if err := s.check(); err != nil {
		return Limit{}, nil, err
	}
	switch s.Algorithm {
	case AlgorithmContinuous:
		return s.compileContinuous()
	case AlgorithmStepped:
		if s.Anchor == AnchorCalendar {
			l, err := s.compileCalendar()
			return l, nil, err
		}
		return s.compileStepped(), nil, nil
	}
	return s.compileSliding(), nil, nil
}

func (s Spec) compileContinuous() (Limit, *Approximation, error) {
	bounded := s.Capacity
	if most := s.maxDebt(); most != nil {
		bounded += *most
	}
	l := Limit{capacity: s.Capacity}
	asked := big.NewRat(int64(s.Rate.Tokens), s.Rate.Per.Microseconds())
	l.n, l.p = asked.Num().Int64(), asked.Denom().Int64()

	var report *Approximation
	if maxP := maxUnits / max(int64(bounded), 1); l.p > maxP {
		used := closestBelow(asked, maxP)
		if used.Sign() == 0 || !isCloseEnough(asked, used) {
			return Limit{}, nil, fmt.Errorf("%w: rate %v with a capacity of %v cannot be represented closely enough; "+
				"use a smaller capacity or a rounder rate", ErrLimit, s.Rate, bounded)
		}
		l.n, l.p = used.Num().Int64(), used.Denom().Int64()
		diff := new(big.Rat).Sub(asked, used)
		rel, _ := diff.Quo(diff, asked).Float64()
		report = &Approximation{Asked: s.Rate, Tokens: Tokens(l.n), Micros: l.p, RelativeError: rel}
	}
	s.setDebt(&l, l.p)
	return l, report, nil
}

func (s Spec) setDebt(l *Limit, unit int64) {
	l.debt = Tokens(maxUnits/unit) - l.capacity
	if most := s.maxDebt(); most != nil {
		l.debt = *most
	}
	if s.Queue > 0 {
		l.how |= howQueue
	}
}

func (s Spec) maxDebt() *Tokens {
	if s.Queue > 0 {
		return &s.Queue
	}
	return s.MaxReserved
}

// closestBelow returns the largest fraction that is at most r and has a denominator of at most maxP. It walks the
// continued fraction of r (the Stern–Brocot tree, many steps at a time) and keeps the best bounds on both sides.
func closestBelow(r *big.Rat, maxP int64) *big.Rat {
	// lo = ln/ld ≤ r < hi = hn/hd are always neighbors.
	one, limit := big.NewInt(1), big.NewInt(maxP)
	ln, ld := new(big.Int).Div(r.Num(), r.Denom()), big.NewInt(1)
	hn, hd := new(big.Int).Add(ln, one), big.NewInt(1)
	num, den := r.Num(), r.Denom()
	for {
		// Move lo towards hi: lo + k·hi ≤ r  ⇔  k ≤ (num·ld − den·ln) / (den·hn − num·hd).
		gap := sub(mul(num, ld), mul(den, ln))
		if gap.Sign() == 0 {
			break // lo is r itself
		}
		k := new(big.Int).Div(gap, sub(mul(den, hn), mul(num, hd)))
		k = minInt(k, new(big.Int).Div(sub(limit, ld), hd))
		ln, ld = new(big.Int).Add(ln, mul(k, hn)), new(big.Int).Add(ld, mul(k, hd))
		moved := k.Sign() > 0

		// Move hi towards lo: hi + k·lo > r  ⇔  k < (den·hn − num·hd) / (num·ld − den·ln).
		gap = sub(mul(num, ld), mul(den, ln))
		if gap.Sign() == 0 {
			break
		}
		k = new(big.Int).Div(sub(sub(mul(den, hn), mul(num, hd)), one), gap)
		k = minInt(k, new(big.Int).Div(sub(limit, hd), ld))
		hn, hd = new(big.Int).Add(hn, mul(k, ln)), new(big.Int).Add(hd, mul(k, ld))
		if !moved && k.Sign() <= 0 {
			break
		}
	}
	return new(big.Rat).SetFrac(ln, ld)
}

func mul(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }
func sub(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }

func minInt(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func isCloseEnough(asked, used *big.Rat) bool {
	diff := new(big.Rat).Sub(asked, used)
	diff.Mul(diff, big.NewRat(maxRelativeError, 1))
	return diff.Cmp(asked) < 0
}

func (s Spec) compileStepped() Limit {
	l := Limit{capacity: s.Capacity, n: int64(s.Rate.Tokens), p: s.Rate.Per.Microseconds()}
	l.how = s.Algorithm.bits() | uint64(s.Anchor)<<howAnchor | uint64(s.Start.Microseconds())<<howStart
	s.setDebt(&l, 1)
	return l
}

func (s Spec) compileSliding() Limit {
	l := Limit{capacity: s.Rate.Tokens, n: int64(s.Rate.Tokens), p: s.Rate.Per.Microseconds(), how: s.Algorithm.bits()}
	if s.MaxReserved == nil && s.Algorithm != AlgorithmConcurrency {
		l.debt = MaxWindowTokens - l.capacity
	}
	return l
}
