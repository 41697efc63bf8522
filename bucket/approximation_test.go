// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"errors"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
)

// bruteForceBelow tries every denominator up to maxP.
func bruteForceBelow(r *big.Rat, maxP int64) *big.Rat {
	num, den := r.Num().Uint64(), r.Denom().Uint64()
	bestN, bestP := uint64(0), uint64(1)
	for p := uint64(1); p <= uint64(maxP); p++ {
		hi, lo := bits.Mul64(num, p)
		n, _ := bits.Div64(hi, lo, den) // the quotient fits: both are below 2^53 and p is small
		// n/p > bestN/bestP, in 128 bits
		ah, al := bits.Mul64(n, bestP)
		bh, bl := bits.Mul64(bestN, p)
		if ah > bh || ah == bh && al > bl {
			bestN, bestP = n, p
		}
	}
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(bestN), new(big.Int).SetUint64(bestP))
}

func TestClosestBelow_IsTheBestOfAll(t *testing.T) {
	check := func(r *big.Rat, maxP int64) {
		t.Helper()
		if got, want := bucket.ClosestBelow(r, maxP), bruteForceBelow(r, maxP); got.Cmp(want) != 0 {
			t.Fatalf("closest below %v with denominators up to %d: %v, want %v", r, maxP, got, want)
		}
	}
	for den := int64(1); den <= 24; den++ {
		for num := int64(1); num <= 40; num++ {
			for maxP := int64(1); maxP <= 26; maxP++ {
				check(big.NewRat(num, den), maxP)
			}
		}
	}
	rnd := rand.New(testseed.PCG(1, 2))
	for range 2000 {
		check(big.NewRat(1+rnd.Int64N(1<<rnd.IntN(53)), 1+rnd.Int64N(1<<rnd.IntN(53))), 1+rnd.Int64N(500))
	}
}

func TestSpecCompile_ReportsAnApproximation(t *testing.T) {
	rate := bucket.Rate{Tokens: 1_000_000_001, Per: time.Second} // 1000000.001 per second
	l, report, err := bucket.Spec{Capacity: 9_000_000_000 * bucket.Token, Rate: rate}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if report == nil || report.Asked != rate || report.Tokens != 1000 || report.Micros != 1 {
		t.Fatalf("report %+v, want 1000 thousandths every microsecond for %v", report, rate)
	}
	if n, p := l.Refill(); n != report.Tokens || p != report.Micros {
		t.Errorf("refill %v/%d differs from the report %+v", n, p, *report)
	}
	if e := report.RelativeError; e <= 0 || e >= 1e-9 {
		t.Errorf("relative error %g, want above 0 and below 1e-9", e)
	}
}

func TestSpecCompile_ApproximatesFromBelowWithinOneInABillion(t *testing.T) {
	rnd := rand.New(testseed.PCG(3, 4))
	replaced, refused := 0, 0
	for range 3000 {
		s := bucket.Spec{
			Capacity: bucket.Tokens(1 + rnd.Int64N(1<<rnd.IntN(53))),
			Rate:     bucket.Rate{Tokens: bucket.Tokens(1 + rnd.Int64N(1<<rnd.IntN(53))), Per: time.Duration(1+rnd.Int64N(1<<rnd.IntN(46))) * time.Microsecond},
		}
		l, report, err := s.Compile()
		if err != nil {
			if !errors.Is(err, bucket.ErrLimit) {
				t.Fatalf("%+v: error %v does not wrap ErrLimit", s, err)
			}
			refused++
			continue
		}
		n, p := l.Refill()
		asked, used := big.NewRat(int64(s.Rate.Tokens), s.Rate.Per.Microseconds()), big.NewRat(int64(n), p)
		diff := new(big.Rat).Sub(asked, used)
		if (report == nil) != (diff.Sign() == 0) {
			t.Fatalf("%+v: used %v for %v, report %+v", s, used, asked, report)
		}
		if diff.Sign() < 0 || new(big.Rat).Mul(diff, big.NewRat(1e9, 1)).Cmp(asked) >= 0 {
			t.Fatalf("%+v: used %v for %v: not from below within one in a billion", s, used, asked)
		}
		units := new(big.Int).Mul(big.NewInt(int64(l.Capacity()+l.MaxReserved())), big.NewInt(p))
		if units.BitLen() > 53 {
			t.Fatalf("%+v: (capacity + debt)·p = %v is not below 2^53", s, units)
		}
		if report != nil {
			replaced++
		}
	}
	if replaced < 100 || refused < 100 {
		t.Errorf("%d replaced and %d refused of 3000: the test does not reach what it tests", replaced, refused)
	}
}
