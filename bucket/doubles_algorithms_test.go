// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// The stepped bucket and the sliding window in doubles, like a Lua script: see doubles_test.go.

// doubleAny is a limit with the extra arguments of a script.
type doubleAny struct {
	doubleLimit
	start         float64
	first, queued bool
}

// divMod returns ⌊a/b⌋ and the rest, for any a and b > 0.
func divMod(a, b float64) (quotient, rest float64) {
	quotient = math.Floor(a / b)
	return quotient, a - quotient*b
}

func (l doubleAny) beginning(t *testing.T, at float64) float64 {
	_, into := divMod(exact(t, at-l.start), l.p)
	return at - into
}

func (l doubleAny) step(t *testing.T, s doubleState, now float64) (spent, at float64) {
	now = math.Max(now, s.asOf)
	if spent = s.spent; s.unit != 1 {
		spent = math.Min(up(s.spent, math.Max(s.unit, 1)), l.c)
	}
	from := s.asOf
	switch {
	case l.first && spent == 0:
		return 0, now
	case l.first:
		_, into := divMod(now-from, l.p)
		at = now - into
	default:
		if at = l.beginning(t, now); spent == 0 {
			return 0, at
		}
		if from = l.beginning(t, from); from < s.asOf {
			from += l.p
		}
		at = math.Max(at, from)
	}
	steps, _ := divMod(at-from, l.p)
	switch whole := steps >= up(spent, l.n); { // before multiplying
	case whole && l.first:
		return 0, now
	case whole:
		return 0, at
	}
	spent = exact(t, spent-exact(t, steps*l.n))
	return math.Min(spent, exact(t, l.c+l.debt)), at
}

// reach returns the time from a caller's instant until so many intervals have passed. This interval starts behind
// microseconds after that instant. The result is exact or at least 2^53, because each term and the rounded sum are.
func (l doubleAny) reach(t *testing.T, times, behind float64) float64 {
	if behind > 0 {
		return times*l.p + behind
	}
	return (times-1)*l.p + exact(t, l.p+behind)
}

// uncompared is the wait of a reservation with tokens after more than 2^53 µs, which a script does not compute.
const uncompared = -2

// takeStepped takes. With a negative maxWait it does not queue; forced is −2.
func (l doubleAny) takeStepped(t *testing.T, s doubleState, now, cost, maxWait float64) (doubleState, doubleAnswer) {
	spent, at := l.step(t, s, now)
	behind := exact(t, at-now)
	a := doubleAnswer{retry: -1}
	if maxWait == 0 && l.queued {
		maxWait = -2
	}
	room := exact(t, l.c-cost)
	switch {
	case room < -l.debt, maxWait != -2 && room < 0:
	case maxWait == -2 && spent <= exact(t, room+l.debt), spent <= room:
		a.allowed, a.retry = true, 0
	case maxWait == -2:
		a.retry = cut(l.reach(t, up(exact(t, spent-exact(t, room+l.debt)), l.n), behind))
	default:
		times, wait := up(spent-room, l.n), math.Max(maxWait, 0)
		over := exact(t, spent-exact(t, room+l.debt))
		switch a.allowed = (wait == 0 || over <= 0) && l.reach(t, times, math.Min(behind, 0)) <= wait; {
		case a.allowed:
			a.retry = 0
		case wait == 0:
			a.retry = cut(l.reach(t, times, behind))
		case times*l.p > longest:
			a.retry = uncompared
		default:
			lent := up(math.Max(over, 0), l.n) * l.p
			a.retry = cut(math.Max(lent, times*l.p-wait) + behind)
		}
	}
	if a.allowed {
		spent = exact(t, spent+cost)
		s = doubleState{spent, at, 1}
	}
	a.remaining = math.Max(l.c-spent, 0)
	if spent > 0 {
		a.full = cut(l.reach(t, up(spent, l.n), behind))
	}
	return s, a
}

type doubleWindow struct{ prev, cur, start float64 }

func (l doubleAny) slide(w doubleWindow, now float64) doubleWindow {
	now = math.Max(now, w.start)
	switch passed, _ := divMod(now-w.start, l.p); {
	case passed == 1:
		return doubleWindow{w.cur, 0, w.start + l.p}
	case passed > 1:
		_, into := divMod(now, l.p)
		return doubleWindow{0, 0, now - into}
	}
	return w
}

// into returns ⌊elapsed·4096/p⌋ in two digits to the base 64, because the product may exceed a double's exact range.
func (l doubleAny) into(t *testing.T, elapsed float64) float64 {
	high, rest := divMod(exact(t, elapsed*64), l.p)
	low, _ := divMod(exact(t, rest*64), l.p)
	return high*64 + low
}

func (l doubleAny) fits(t *testing.T, prev, room float64) float64 {
	if prev == 0 {
		return 0
	}
	faded, _ := divMod(exact(t, room*4096), prev)
	return math.Max(4096-faded, 0)
}

func (l doubleAny) instantOf(t *testing.T, into float64) float64 {
	whole, rest := divMod(l.p, 4096)
	return exact(t, exact(t, into*whole)+up(exact(t, into*rest), 4096))
}

func (l doubleAny) retryWindow(t *testing.T, w doubleWindow, now, cost float64, force bool) float64 {
	behind := exact(t, w.start-now)
	if force && cost <= l.c+l.debt {
		if exact(t, w.cur+cost) <= l.c+l.debt {
			return 0
		}
		return exact(t, l.p+behind)
	}
	if cost > l.c {
		return -1
	}
	if room := exact(t, l.c-cost-w.cur); room >= 0 {
		switch first := l.fits(t, w.prev, room); {
		case first <= l.into(t, math.Max(now-w.start, 0)):
			return 0
		case first < 4096:
			return exact(t, l.instantOf(t, first)+behind)
		}
	}
	if first := l.fits(t, w.cur, l.c-cost); first < 4096 {
		return exact(t, exact(t, l.p+l.instantOf(t, first))+behind)
	}
	return exact(t, 2*l.p+behind)
}

func (l doubleAny) takeWindow(t *testing.T, w doubleWindow, now, cost float64, force bool) (doubleWindow, doubleAnswer) {
	slid := l.slide(w, now)
	a := doubleAnswer{retry: l.retryWindow(t, slid, now, cost, force)}
	if a.allowed = a.retry == 0; a.allowed {
		slid.cur = exact(t, slid.cur+cost)
		w = slid
	}
	counts := exact(t, slid.prev*(4096-l.into(t, math.Max(now-slid.start, 0))))
	a.remaining = math.Max(exact(t, l.c-slid.cur-up(counts, 4096)), 0)
	switch behind := slid.start - now; {
	case slid.cur > 0:
		a.full = exact(t, 2*l.p+behind)
	case slid.prev > 0:
		a.full = exact(t, l.p+behind)
	}
	return w, a
}

// enormous returns the largest possible stepped or sliding limit.
func enormous(r *rand.Rand, kind bucket.Spec) *oracleLimit {
	for {
		s := kind
		s.Rate = bucket.Rate{Tokens: bucket.Tokens(1 + upTo(r, 1<<53-2)), Per: randomPer(r, 1<<50-1)}
		most := bucket.Tokens(upTo(r, 1<<53-1))
		if s.Algorithm == bucket.AlgorithmSlidingWindow {
			s.Rate = bucket.Rate{Tokens: bucket.Tokens(1 + upTo(r, 1<<41-2)), Per: randomPer(r, 1<<47-1)}
			if most %= 2; most == 0 {
				s.MaxReserved = &most
			}
		} else {
			s.Capacity, s.MaxReserved = bucket.Tokens(upTo(r, 1<<53-1)), &most
			s.Start = time.Duration(r.Int64N(s.Rate.Per.Microseconds())) * time.Microsecond
			if s.Anchor != bucket.AnchorEpoch {
				s.Start = 0
			}
			if s.Queue > 0 {
				s.Queue, s.MaxReserved = 1+most, nil
			}
		}
		if o, err := oracleFor(s, "key"); err == nil {
			return o
		}
	}
}

func doublesOf(o *oracleLimit) doubleAny {
	return doubleAny{doubles(o.limit), float64(o.start), o.limit.Anchor() == bucket.AnchorFirst, o.limit.Queued()}
}

// TestDoubles_GiveTheSameNumbersForEveryAlgorithm also fails if an intermediate value is not an exact integer.
func TestDoubles_GiveTheSameNumbersForEveryAlgorithm(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rand.Rand, kind bucket.Spec) {
		if kind.Algorithm != bucket.AlgorithmStepped && kind.Algorithm != bucket.AlgorithmSlidingWindow ||
			kind.Anchor == bucket.AnchorCalendar { // scripts get the starts of windows with the call
			return
		}
		for range 1000 {
			o, now := enormous(r, kind), upTo(r, 1<<51)
			var s bucket.State
			var d doubleState
			var w doubleWindow
			for range 25 {
				if now = walk(r, o, now); now >= 1<<51 {
					now = upTo(r, 1<<51)
				}
				cost, wait := min(max(price(r, o), 0), int64(bucket.MaxTokens)), min(upTo(r, 1<<54), mostMicros)*int64(r.IntN(2))
				if wait == 0 && r.IntN(3) == 0 {
					wait = forced
				}
				at, was := bucket.Instant(now), s
				next, snap := o.limit.Reserve(s, at, bucket.Tokens(cost), waitOf(wait))
				s = next
				var a doubleAnswer
				if kind.Algorithm == bucket.AlgorithmStepped {
					d, a = doublesOf(o).takeStepped(t, d, float64(now), float64(cost), math.Max(cut(float64(wait)), -2))
				} else {
					w, a = doublesOf(o).takeWindow(t, w, float64(now), float64(cost), wait == forced)
					d = doubleState{w.prev + w.cur, w.start, -doublesOf(o).p}
				}
				got := doubleAnswer{snap.Allowed, float64(snap.Remaining()), -1, float64(snap.FullAfter().Microseconds())}
				switch {
				case a.retry == uncompared:
					got.retry = uncompared
				case snap.RetryAfter != bucket.Never:
					got.retry = float64(snap.RetryAfter.Microseconds())
				}
				if got != a || s.Spent != 0 && !same(s, d) {
					t.Fatalf("%v from %d, %+v at %d, cost %d, wait %d: %+v %+v, in doubles %+v %+v", o.limit, o.start, was, now, cost, wait, s, got, d, a)
				}
			}
		}
	})
}
