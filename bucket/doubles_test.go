// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// This file repeats the arithmetic like a Lua script: only doubles, and division with math.Floor. It must
// compute the same numbers as the package, and every intermediate value must be an exact integer.

type doubleLimit struct{ c, n, p, debt float64 }

type doubleState struct{ spent, asOf, unit float64 }

type doubleAnswer struct {
	allowed                               bool
	remaining, retry /* −1 never */, full float64
}

// exact fails the test if v is not an integer below 2^53.
func exact(t *testing.T, v float64) float64 {
	t.Helper()
	if v != math.Floor(v) || math.Abs(v) >= 1<<53 {
		t.Fatalf("intermediate %v is not exact in a double", v)
	}
	return v
}

// cut caps a wait at 2^53 − 1. The sum of two exact numbers is exact or above the cap.
func cut(v float64) float64 { return math.Min(v, longest) }

// up returns ceil(a/b). For a below 2^53 the division never rounds up to the next integer, so a script may use
// math.floor((a-1)/b)+1.
func up(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return math.Floor((a-1)/b) + 1
}

func (l doubleLimit) refill(t *testing.T, s doubleState, now float64) (spent, at float64) {
	at = math.Max(math.Max(now, s.asOf), 0)
	if s.spent == 0 {
		return 0, at
	}
	spent = s.spent
	if s.unit != l.p {
		spent = exact(t, math.Min(up(s.spent, math.Max(s.unit, 1)), l.c)*l.p)
	}
	elapsed := exact(t, at-s.asOf)
	if elapsed >= up(spent, l.n) {
		return 0, at
	}
	spent = exact(t, spent-exact(t, elapsed*l.n))
	return math.Min(spent, exact(t, (l.c+l.debt)*l.p)), at
}

func (l doubleLimit) take(t *testing.T, s doubleState, now, cost, maxWait float64, spend bool) (doubleState, doubleAnswer) {
	spent, at := l.refill(t, s, now)
	behind := exact(t, at-now)
	a := doubleAnswer{retry: -1}
	if cost >= 0 && exact(t, l.c-cost) >= -l.debt {
		debt := exact(t, l.debt*l.p)
		loan := debt
		if maxWait < up(debt, l.n) {
			loan = exact(t, maxWait*l.n)
		}
		room := exact(t, exact(t, (l.c-cost)*l.p)+loan)
		switch {
		case room < 0:
		case spent <= room:
			a.allowed, a.retry = true, 0
		default:
			a.retry = cut(up(exact(t, spent-room), l.n) + behind)
		}
	}
	if a.allowed && spend {
		spent = exact(t, spent+exact(t, cost*l.p))
		s = doubleState{spent, at, l.p}
	}
	a.remaining = math.Max(l.c-up(spent, l.p), 0)
	if spent > 0 {
		a.full = cut(up(spent, l.n) + behind)
	}
	return s, a
}

func (l doubleLimit) refund(t *testing.T, s doubleState, now, amount float64) doubleState {
	if s.spent == 0 {
		return s
	}
	spent, at := l.refill(t, s, now)
	if amount >= up(spent, l.p) {
		return doubleState{0, at, l.p}
	}
	return doubleState{exact(t, spent-exact(t, amount*l.p)), at, l.p}
}

func doubles(l bucket.Limit) doubleLimit {
	n, p := l.Refill()
	return doubleLimit{float64(l.Capacity()), float64(n), float64(p), float64(l.MaxReserved())}
}

func same(s bucket.State, d doubleState) bool {
	return float64(s.Spent) == d.spent && float64(s.AsOf) == d.asOf && (s.Spent == 0 || float64(s.Unit) == d.unit)
}

func TestDoubles_GiveTheSameNumbers(t *testing.T) {
	r := random(10)
	for range 2500 {
		var s bucket.State
		var d doubleState
		l, now := randomLimit(r), upTo(r, 1<<50)
		for range 30 {
			if now = randomStep(r, l, now); now < 0 || now >= 1<<52 {
				now = upTo(r, 1<<52) // the instants a store sees, with room for waits
			}
			switch r.IntN(16) {
			case 0:
				l = randomLimit(r)
			case 1:
				l = resized(t, r, l)
			case 2:
				amount := 1 + upTo(r, int64(bucket.MaxTokens)-1)
				s, d = l.Refund(s, bucket.Instant(now), bucket.Tokens(amount)), doubles(l).refund(t, d, float64(now), float64(amount))
			default:
				cost, maxWait := max(min(randomCost(r, l), int64(bucket.MaxTokens)), 0), max(randomWait(r, l), 0)
				checkDoubles(t, l, &s, &d, now, cost, maxWait)
			}
			if !same(s, d) {
				t.Fatalf("%v: state %+v, in doubles %+v", l, s, d)
			}
		}
	}
}

func checkDoubles(t *testing.T, l bucket.Limit, s *bucket.State, d *doubleState, now, cost, maxWait int64) {
	t.Helper()
	before := *s
	next, snap := l.Reserve(*s, bucket.Instant(now), bucket.Tokens(cost), time.Duration(maxWait)*time.Microsecond)
	var a doubleAnswer
	*s = next
	*d, a = doubles(l).take(t, *d, float64(now), float64(cost), cut(float64(maxWait)), true)
	got := doubleAnswer{snap.Allowed, float64(snap.Remaining()), -1, float64(snap.FullAfter().Microseconds())}
	if snap.RetryAfter != bucket.Never {
		got.retry = float64(snap.RetryAfter.Microseconds())
	}
	if got != a {
		t.Fatalf("%v, %+v at %d, cost %d, wait %d: %+v, in doubles %+v", l, before, now, cost, maxWait, got, a)
	}
}
