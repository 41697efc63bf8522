// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"errors"
	"fmt"
	"math/big"
	"time"
)

// maxUnits bounds every product of the arithmetic: integers below 2^53 are
// exact in Go, in SQL and in Lua's doubles.
const maxUnits = 1<<53 - 1

// maxRelativeError is how far below the asked rate a limit's rate may lie where
// the asked one does not fit, as 1/maxRelativeError.
const maxRelativeError = 1_000_000_000

// A Limit is a capacity and a refill rate, ready for use. It is made by
// [NewLimit] or [Spec.Compile], is immutable, comparable with ==, and safe for
// concurrent use. The zero Limit holds nothing: every cost above 0 is denied
// for ever.
type Limit struct {
	capacity Tokens
	debt     Tokens // the most that may be owed: reservations only
	n, p     int64  // refill: n thousandths every p microseconds, lowest terms
}

// NewLimit returns the limit of a bucket that holds at most capacity and
// refills at rate. It is short for [Spec.Compile], for callers who do not need
// to know that a rate was approximated.
func NewLimit(capacity Tokens, rate Rate) (Limit, error) {
	l, _, err := Spec{Capacity: capacity, Rate: rate}.Compile()
	return l, err
}

// A Spec is what a limit is compiled from.
type Spec struct {
	Capacity Tokens // the most a bucket holds; 0 makes every take a reservation
	Rate     Rate

	// MaxReserved bounds the debt that reservations may run up, in tokens. Nil
	// is no bound but the arithmetic's own (2^53 units); 0 is no debt at all.
	MaxReserved *Tokens
}

// An Approximation reports that a rate did not fit the arithmetic together with
// its capacity and was replaced by the closest one that does and is not above
// it. The error is below one in a billion; where it would be more, the limit is
// refused.
type Approximation struct {
	Asked Rate

	// Refill is used: Tokens every Micros microseconds.
	Tokens Tokens
	Micros int64

	// RelativeError is (asked − used) / asked, for people to read.
	RelativeError float64
}

// ErrLimit is wrapped by the errors of [Spec.Compile].
var ErrLimit = errors.New("bucket: not a limit")

// Compile checks s and returns its limit. The report is nil where the rate is
// exact. The bounds: 0 ≤ capacity, 0 < rate, and (capacity + max reserved)·p
// below 2^53, where p is the number of microseconds in the rate's lowest terms.
func (s Spec) Compile() (Limit, *Approximation, error) {
	bounded := s.Capacity
	switch {
	case s.Capacity < 0 || s.Capacity > MaxTokens:
		return Limit{}, nil, fmt.Errorf("%w: capacity %v: must be between 0 and %v", ErrLimit, s.Capacity, MaxTokens)
	case s.MaxReserved == nil:
	case *s.MaxReserved < 0 || *s.MaxReserved > MaxTokens-s.Capacity:
		return Limit{}, nil, fmt.Errorf("%w: max reserved %v: must be between 0 and %v with a capacity of %v",
			ErrLimit, *s.MaxReserved, MaxTokens-s.Capacity, s.Capacity)
	default:
		bounded += *s.MaxReserved
	}
	if err := s.Rate.check(); err != nil {
		return Limit{}, nil, fmt.Errorf("%w: %w", ErrLimit, err)
	}
	l := Limit{capacity: s.Capacity}
	asked := big.NewRat(int64(s.Rate.Tokens), s.Rate.Per.Microseconds())
	l.n, l.p = asked.Num().Int64(), asked.Denom().Int64()

	var report *Approximation
	if maxP := maxUnits / max(int64(bounded), 1); l.p > maxP {
		used := closestBelow(asked, maxP)
		if used.Sign() == 0 || !closeEnough(asked, used) {
			return Limit{}, nil, fmt.Errorf("%w: rate %v with a capacity of %v: no rate close enough below it can be represented; "+
				"use a smaller capacity or a rounder rate", ErrLimit, s.Rate, bounded)
		}
		l.n, l.p = used.Num().Int64(), used.Denom().Int64()
		diff := new(big.Rat).Sub(asked, used)
		rel, _ := diff.Quo(diff, asked).Float64()
		report = &Approximation{Asked: s.Rate, Tokens: Tokens(l.n), Micros: l.p, RelativeError: rel}
	}
	l.debt = Tokens(maxUnits/l.p) - l.capacity
	if s.MaxReserved != nil {
		l.debt = *s.MaxReserved
	}
	return l, report, nil
}

// closestBelow returns the largest fraction with a denominator of at most maxP
// that is not above r. It walks the continued fraction of r (the Stern–Brocot
// tree, many steps at a time), keeping the best bounds on both sides.
func closestBelow(r *big.Rat, maxP int64) *big.Rat {
	// lo = ln/ld ≤ r < hi = hn/hd are neighbours throughout.
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

// closeEnough reports whether used is less than 1/maxRelativeError below asked.
func closeEnough(asked, used *big.Rat) bool {
	diff := new(big.Rat).Sub(asked, used)
	diff.Mul(diff, big.NewRat(maxRelativeError, 1))
	return diff.Cmp(asked) < 0
}

// Capacity is the most a bucket of this limit holds.
func (l Limit) Capacity() Tokens { return l.capacity }

// MaxReserved is the most that reservations may owe.
func (l Limit) MaxReserved() Tokens { return l.debt }

// Refill returns the rate in lowest terms: n thousandths every p microseconds.
// Both are 0 in the zero Limit only.
func (l Limit) Refill() (n Tokens, p int64) { return Tokens(l.n), l.p }

// TimeFor is how long the limit needs to refill t, rounded up to a microsecond.
// It is [Never] for the zero Limit and for more than any bucket of this rate
// can hold or owe (t·p from 2^53 on).
func (l Limit) TimeFor(t Tokens) time.Duration {
	if t <= 0 {
		return 0
	}
	if l.n == 0 {
		return Never
	}
	if t > MaxTokens || l.p > maxUnits/int64(t) {
		return Never
	}
	return micros(ceilDiv(int64(t)*l.p, l.n), 0)
}

// String formats l for people: "capacity 20, refill 10/1s".
func (l Limit) String() string {
	return fmt.Sprintf("capacity %v, refill %v", l.capacity, l.rate())
}

// rate is the refill in the shortest round period that makes it whole
// thousandths, and else as it is.
func (l Limit) rate() Rate {
	for _, per := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		us := per.Microseconds()
		if l.p != 0 && us%l.p == 0 && l.n <= int64(MaxTokens)/(us/l.p) {
			return Rate{Tokens: Tokens(l.n * (us / l.p)), Per: per}
		}
	}
	return Rate{Tokens: Tokens(l.n), Per: time.Duration(l.p) * time.Microsecond}
}
