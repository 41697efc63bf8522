// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// Cancellations and new accounts in doubles, like a Lua script: see doubles_test.go.

// refilled returns the refill within us microseconds, at most 2^53 − 1.
func (l doubleAny) refilled(t *testing.T, us float64, stepped bool) float64 {
	times, most := math.Max(us, 0), float64(1<<53-1)
	if stepped {
		times = math.Floor(times / l.p)
	}
	if times > math.Floor(most/l.n) { // compared before it is multiplied
		return most
	}
	return exact(t, times*l.n)
}

// look returns the missing amount, its instant and its unit.
func (l doubleAny) look(t *testing.T, s doubleState, now float64, stepped bool) (spent, at, unit float64) {
	if stepped {
		spent, at = l.step(t, s, now)
		return spent, at, 1
	}
	spent, at = l.refill(t, s, now)
	return spent, at, l.p
}

func (l doubleAny) cancel(t *testing.T, s doubleState, now, amount float64, taken bucket.Taken, stepped bool) doubleState {
	cost := float64(taken.Cost)
	if amount = math.Min(amount, cost); amount <= 0 || s.spent == 0 {
		return s
	}
	spent, at, unit := l.look(t, s, now, stepped)
	refilled := l.refilled(t, exact(t, at-float64(taken.At)), stepped)
	back := math.Min(math.Min(exact(t, amount*unit), math.Max(exact(t, cost*unit)-refilled, 0)), spent)
	if spent > exact(t, l.c*unit) {
		if amount < cost || refilled != exact(t, float64(taken.Spent)-spent) {
			return s
		}
		back = math.Min(amount*unit, spent)
	}
	if back <= 0 {
		return s
	}
	return doubleState{exact(t, spent-back), at, unit}
}

// begin returns the new account of l next to an account with the largest missing amount.
func (l doubleAny) begin(t *testing.T, missing, holds, at float64, stepped bool) doubleState {
	lacks := math.Min(math.Min(missing, holds), l.c) + math.Min(math.Max(missing-holds, 0), l.debt)
	if !stepped {
		return doubleState{exact(t, lacks*l.p), at, l.p}
	}
	if !l.first {
		at = l.beginning(t, at)
	}
	return doubleState{exact(t, lacks), at, 1}
}

// aLimit returns a continuous or stepped limit of the largest possible size.
func aLimit(t *testing.T, r *rand.Rand, stepped bool) (bucket.Limit, doubleAny) {
	t.Helper()
	if stepped {
		o := enormous(r, bucket.Spec{Algorithm: bucket.AlgorithmStepped, Anchor: bucket.Anchor(r.IntN(3))})
		return o.limit, doublesOf(o)
	}
	for {
		if l := randomLimit(r); l.TimeFor(l.Capacity()+l.MaxReserved()) < far {
			return l, doubleAny{doubleLimit: doubles(l)}
		}
	}
}

// TestDoubles_CancelTheSame also fails if an intermediate value is not an exact integer.
func TestDoubles_CancelTheSame(t *testing.T) {
	r := random(31)
	canceled := 0
	for i := range 3000 {
		stepped := i%2 == 1
		l, double := aLimit(t, r, stepped)
		var s bucket.State
		var takes []bucket.Taken
		now := upTo(r, 1<<50)
		for range 25 {
			if now = randomStep(r, l, now); now < 0 || now >= 1<<51 {
				now = upTo(r, 1<<51)
			}
			at := bucket.Instant(now)
			if r.IntN(2) == 0 || len(takes) == 0 {
				cost := max(min(randomCost(r, l), int64(bucket.MaxTokens)), 0)
				var snap bucket.Snapshot
				wait := []time.Duration{0, bucket.Forced}[r.IntN(2)]
				if s, snap = l.Reserve(s, at, bucket.Tokens(cost), wait); snap.Taken().Cost > 0 {
					takes = append(takes, snap.Taken())
				}
				continue
			}
			taken := takes[len(takes)-1-r.IntN(min(len(takes), 3))]
			amount := taken.Cost
			if r.IntN(3) == 0 {
				amount = bucket.Tokens(upTo(r, int64(amount)))
			}
			before := doubleState{float64(s.Spent), float64(s.AsOf), float64(s.Unit)}
			after := l.Cancel(s, at, amount, taken)
			if d := double.cancel(t, before, float64(now), float64(amount), taken, stepped); !same(after, d) {
				t.Fatalf("%v, %+v at %d, cancels %v of %+v: %+v, in doubles %+v", l, s, now, amount, taken, after, d)
			}
			if after != s {
				canceled++
			}
			s = after
		}
	}
	if canceled < 1000 {
		t.Errorf("%d cancellations gave something back: the run means little", canceled)
	}
}

// TestDoubles_OpenTheSame opens an account of a limit next to another limit's.
func TestDoubles_OpenTheSame(t *testing.T) {
	r := random(32)
	gained := 0
	for i := range 20_000 {
		stepped, becomes := i%2 == 1, i%3 == 1
		l, double := aLimit(t, r, stepped)
		m, next := aLimit(t, r, becomes)
		now := upTo(r, 1<<50)
		s, snap := l.Reserve(bucket.State{}, bucket.Instant(now), bucket.Tokens(max(min(randomCost(r, l), int64(bucket.MaxTokens)), 0)), bucket.Forced)
		if !snap.Allowed || l == m {
			continue
		}
		if now = randomStep(r, l, now); now < 0 || now >= 1<<51 {
			now = upTo(r, 1<<51)
		}
		got, fresh := bucket.Row{{Limit: l, State: s}}.StateFor(&m, bucket.Instant(now))
		spent, _, unit := double.look(t, doubleState{float64(s.Spent), float64(s.AsOf), float64(s.Unit)}, float64(now), stepped)
		missing := up(spent, unit)
		want := next.begin(t, missing, double.c, math.Max(float64(now), float64(s.AsOf)), becomes)
		if fresh != (missing > 0) || !same(got, want) {
			t.Fatalf("%v, %+v at %d becomes %v: %+v, fresh %v; in doubles %+v", l, s, now, m, got, fresh, want)
		}
		if fresh {
			gained++
		}
	}
	if gained < 1000 {
		t.Errorf("%d rows gained an account: the run means little", gained)
	}
}
