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

// Bounds of the limits that are not continuous.
const (
	// MaxWindowTokens bounds the tokens of a [SlidingWindow] limit, so that what
	// it counts in 4096ths stays below 2^53.
	MaxWindowTokens Tokens = 1<<41 - 1

	// maxWindowMicros bounds its window: 4.4 years.
	maxWindowMicros = 1<<47 - 1

	// maxStepMicros bounds the interval of a stepped limit: 35 years.
	maxStepMicros = 1<<50 - 1

	// MaxLogTokens bounds the tokens of a [SlidingLog] limit, and with it the
	// costs of a token that a bucket has to remember. Costs below a token could
	// be more: from [MaxLogEntries] on the newest two are remembered as one, as
	// if both had been spent at the later instant.
	MaxLogTokens = MaxLogEntries * Token

	// MaxLogEntries bounds what a bucket of a [SlidingLog] limit remembers.
	MaxLogEntries = 10_000
)

// A Limit is a capacity and a refill rate, ready for use. It is made by
// [NewLimit] or [Spec.Compile], is immutable, comparable with ==, and safe for
// concurrent use. The zero Limit holds nothing: every cost above 0 is denied
// for ever.
type Limit struct {
	capacity Tokens
	debt     Tokens // the most that may be owed
	n, p     int64  // n thousandths every p microseconds; in lowest terms where continuous
	how      uint64 // everything else: see howAlgorithm
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
	// Algorithm is how what was spent comes back. The zero value is the token
	// bucket, which refills all the time.
	Algorithm Algorithm

	// Capacity is the most a bucket holds; of a continuous one, 0 makes every take
	// a reservation. The sliding algorithms hold Rate.Tokens: for them it is that,
	// or 0.
	Capacity Tokens
	Rate     Rate

	// MaxReserved bounds the debt that reservations and charges may run up, in
	// tokens. Nil is no bound but the arithmetic's own (2^53 units); 0 is no debt
	// at all. The sliding algorithms take nil or 0.
	MaxReserved *Tokens

	// Queue makes a leaky bucket: a take that does not fit is admitted as a
	// reservation, and may start after [Snapshot.Wait], while no more than Queue
	// tokens wait. It takes the place of MaxReserved. With a Capacity of one
	// token the work starts evenly spaced. Token buckets only.
	Queue Tokens

	// Anchor is where the intervals of a Stepped limit begin, and Start, between
	// 0 and the interval, moves those of AnchorEpoch.
	Anchor Anchor
	Start  time.Duration
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
// below 2^53, where p is the number of microseconds in the rate's lowest terms
// and 1 where the limit is stepped. Sliding limits hold at most
// [MaxWindowTokens] or [MaxLogTokens].
func (s Spec) Compile() (Limit, *Approximation, error) {
	if err := s.check(); err != nil {
		return Limit{}, nil, err
	}
	switch s.Algorithm {
	case Continuous:
		return s.continuous()
	case Stepped:
		return s.stepped(), nil, nil
	}
	return s.sliding(), nil, nil
}

// continuous returns the limit of a checked token bucket.
func (s Spec) continuous() (Limit, *Approximation, error) {
	bounded := s.Capacity
	if most := s.mostOwed(); most != nil {
		bounded += *most
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
	s.owe(&l, l.p)
	return l, report, nil
}

// owe sets what a bucket that counts in units of 1/unit may owe.
func (s Spec) owe(l *Limit, unit int64) {
	l.debt = Tokens(maxUnits/unit) - l.capacity
	if most := s.mostOwed(); most != nil {
		l.debt = *most
	}
	if s.Queue > 0 {
		l.how |= howQueue
	}
}

// mostOwed is the bound that s sets to what may be owed; nil where it sets none.
func (s Spec) mostOwed() *Tokens {
	if s.Queue > 0 {
		return &s.Queue
	}
	return s.MaxReserved
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

// stepped returns the limit of a checked stepped bucket.
func (s Spec) stepped() Limit {
	l := Limit{capacity: s.Capacity, n: int64(s.Rate.Tokens), p: s.Rate.Per.Microseconds()}
	l.how = uint64(s.Algorithm) | uint64(s.Anchor)<<howAnchor | uint64(s.Start.Microseconds())<<howStart
	s.owe(&l, 1)
	return l
}

// sliding returns the limit of a checked sliding window or log.
func (s Spec) sliding() Limit {
	l := Limit{capacity: s.Rate.Tokens, n: int64(s.Rate.Tokens), p: s.Rate.Per.Microseconds(), how: uint64(s.Algorithm)}
	if s.MaxReserved == nil {
		l.debt = MaxWindowTokens - l.capacity
	}
	return l
}
