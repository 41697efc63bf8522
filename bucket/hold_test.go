// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// A past is a history of takes from one bucket, for the comparison of two worlds: with the canceled amounts, and
// without them.
type past struct {
	at   int64
	cost int64 // what the take keeps in this world
}

// missingIn returns the missing amount at the instant now after the takes of one world, in units of the state. It is
// exact and independent of package bucket. A stepped limit refills at multiples of p, a continuous one all the time.
func missingIn(takes []past, l bucket.Limit, now int64) (missing int64) {
	n, p := l.Refill()
	last := int64(0)
	refill := func(to int64) {
		times := to - last
		if l.Algorithm() == bucket.AlgorithmStepped {
			times = to/p - last/p
		}
		missing, last = max(missing-times*int64(n), 0), to
	}
	for _, t := range takes {
		refill(t.at)
		missing += t.cost * l.Unit()
	}
	refill(now)
	return missing
}

// missingOf returns the missing amount of a state.
func missingOf(l bucket.Limit, s bucket.State, now int64) int64 {
	after, _ := l.Reserve(s, bucket.Instant(now), 0, bucket.Forced)
	return after.Spent
}

// twoWorldLimit returns a continuous or a stepped limit without debt.
func twoWorldLimit(r *rand.Rand) bucket.Limit {
	none := bucket.Tokens(0)
	for {
		spec := bucket.Spec{
			Algorithm: []bucket.Algorithm{bucket.AlgorithmContinuous, bucket.AlgorithmStepped}[r.IntN(2)],
			Capacity:  bucket.Tokens(1 + r.IntN(60)), MaxReserved: &none,
			Rate: bucket.Rate{Tokens: bucket.Tokens(1 + r.IntN(9)), Per: time.Duration(1+r.IntN(90)) * time.Microsecond},
		}
		if l, _, err := spec.Compile(); err == nil {
			return l
		}
	}
}

// TestHold_TwoWorlds cancels holds and plain takes, in whole or in part, in random order. At each instant the bucket is
// at most as full as in a world without the canceled amounts, which gets the same takes.
func TestHold_TwoWorlds(t *testing.T) { checkTwoWorlds(t, 143, 20_000, 1, twoWorldLimit) }

// TestHold_TwoWorldsOfCalendars is TestHold_TwoWorlds with days of UTC, which start at multiples of p. The steps of the clock
// are up to a day and a half.
func TestHold_TwoWorldsOfCalendars(t *testing.T) {
	checkTwoWorlds(t, 147, 5000, 1_000_000_000, func(r *rand.Rand) bucket.Limit {
		none := bucket.Tokens(0)
		spec := bucket.Spec{
			Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorCalendar, Calendar: bucket.Calendar{Window: bucket.CalendarDay, Zone: "UTC"},
			Rate: bucket.Rate{Tokens: bucket.Tokens(1 + r.IntN(60)), Per: bucket.CalendarDay.Length()}, MaxReserved: &none,
		}
		spec.Capacity = spec.Rate.Tokens * bucket.Tokens(1+r.IntN(2)*r.IntN(4))
		l, _, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		return l
	})
}

// checkTwoWorlds compares two worlds of a number of limits. The clock makes steps of up to 120 times scale in microseconds.
func checkTwoWorlds(t *testing.T, seed uint64, limits int, scale int64, newLimit func(*rand.Rand) bucket.Limit) {
	r := random(seed)
	back, possible := 0.0, 0.0
	for range limits {
		l := newLimit(r)
		var s bucket.State
		var takes []past
		var open []int
		taken := map[int]bucket.Taken{}
		now, history := int64(1_000_000), ""
		for range 3 + r.IntN(40) {
			now += r.Int64N(1 + r.Int64N(120)*scale)
			switch {
			case len(open) > 0 && r.IntN(3) == 0:
				at := r.IntN(len(open))
				i := open[at]
				open = slices.Delete(open, at, at+1)
				amount := 1 + r.Int64N(takes[i].cost)
				if r.IntN(2) == 0 {
					amount = takes[i].cost
				}
				before := missingOf(l, s, now)
				s = l.Cancel(s, bucket.Instant(now), bucket.Tokens(amount), taken[i])
				history += fmt.Sprintf("at %d cancel %d of take %d\n", now, amount, i)
				back += float64(before-missingOf(l, s, now)) / float64(l.Unit())
				lost := missingIn(takes, l, now)
				takes[i].cost -= amount
				possible += float64(lost-missingIn(takes, l, now)) / float64(l.Unit())
			default:
				cost := 1 + r.Int64N(int64(l.Capacity()))
				after, snap := l.Take(s, bucket.Instant(now), bucket.Tokens(cost))
				if s = after; !snap.Allowed {
					continue
				}
				if r.IntN(4) > 0 {
					s = holdOrAwait(r, l, s, snap.Taken(), time.Duration(1+r.Int64N(5000*scale))*time.Microsecond)
				}
				history += fmt.Sprintf("at %d take %d\n", now, cost)
				taken[len(takes)] = snap.Taken()
				open = append(open, len(takes))
				takes = append(takes, past{now, cost})
			}
			if got, want := missingOf(l, s, now), missingIn(takes, l, now); got < want {
				t.Fatalf("%v at %d misses %v, without the canceled amounts %v, after\n%s", l, now, got, want, history)
			}
			if h := s.History; h != nil && len(h.Epochs) > bucket.MaxEpochs {
				t.Fatalf("%d epochs", len(h.Epochs))
			}
		}
	}
	share := back / possible
	if share < 0.75 {
		t.Errorf("returned %.3f of the possible amount, want most of it", share)
	}
}

// TestHold_IsExactInItsOwnEpoch: the cancellation of a hold that began an epoch returns exactly the difference between
// the worlds with and without it.
func TestHold_IsExactInItsOwnEpoch(t *testing.T) {
	r := random(144)
	for range 20_000 {
		l := twoWorldLimit(r)
		var s bucket.State
		var takes []past
		now := int64(1_000_000)
		take := func(cost int64) (bucket.Taken, bool) {
			after, snap := l.Take(s, bucket.Instant(now), bucket.Tokens(cost))
			if s = after; snap.Allowed {
				takes = append(takes, past{now, cost})
			}
			return snap.Taken(), snap.Allowed
		}
		for range r.IntN(5) {
			take(1 + r.Int64N(int64(l.Capacity())))
			now += r.Int64N(60)
		}
		var held []int
		var taken []bucket.Taken
		for range 1 + r.IntN(5) { // far apart: each hold has an epoch of its own
			if got, ok := take(1 + r.Int64N(int64(l.Capacity()))); ok {
				held, taken = append(held, len(takes)-1), append(taken, got)
				s = hold(l, s, got, 7*time.Millisecond)
			}
			for end := now + 1200; now < end; now += r.Int64N(500) {
				take(1 + r.Int64N(int64(l.Capacity())/3+1))
			}
		}
		for _, i := range r.Perm(len(held)) {
			if s.History == nil || now >= int64(s.History.Until) { // all holds have expired
				break
			}
			amount := 1 + r.Int64N(takes[held[i]].cost)
			s = l.Cancel(s, bucket.Instant(now), bucket.Tokens(amount), taken[i])
			takes[held[i]].cost -= amount
			if got, want := missingOf(l, s, now), missingIn(takes, l, now); got != want {
				t.Fatalf("%v: misses %v after %d of hold %d are canceled, want %v", l, got, amount, i, want)
			}
		}
	}
}

// TestHold_TwoWorldsAfterReset cancels holds from before a reset. The bucket misses exactly what the takes since the reset
// have left, because the reset has returned the holds' tokens.
func TestHold_TwoWorldsAfterReset(t *testing.T) {
	r := random(146)
	for range 5000 {
		l := twoWorldLimit(r)
		var s bucket.State
		now, id := int64(1_000_000), int64(0)
		hold := func() (bucket.Taken, bool) {
			now += r.Int64N(50)
			after, snap := l.Take(s, bucket.Instant(now), bucket.Tokens(1+r.Int64N(int64(l.Capacity()))))
			if s = after; !snap.Allowed {
				return bucket.Taken{}, false
			}
			id++
			taken := snap.Taken()
			taken.History = id
			row := bucket.Row{{Limit: l, State: s}}
			row, taken = row.WithHold(&l, taken.At, taken, taken.At.Add(time.Millisecond), r.IntN(2) == 0)
			s = row[0].State
			return taken, true
		}
		var old []bucket.Taken
		for range 5 {
			if taken, ok := hold(); ok {
				old = append(old, taken)
			}
		}
		s = bucket.State{} // a reset deletes the row
		var takes []past
		for _, taken := range old {
			for range r.IntN(4) {
				if later, ok := hold(); ok {
					takes = append(takes, past{now, int64(later.Cost)})
				}
			}
			s = l.Cancel(s, bucket.Instant(now), taken.Cost, taken)
			row := bucket.Row{{Limit: l, State: s}}
			before := row.Holds(&l, bucket.Instant(now))
			if row = row.WithoutHold(&l, bucket.Instant(now), taken); row.Holds(&l, bucket.Instant(now)) != before {
				t.Fatal("the end of a hold from before the reset ended a later one")
			}
			if got, want := missingOf(l, s, now), missingIn(takes, l, now); got != want {
				t.Fatalf("%v: misses %v after a hold from before the reset ended, want %v", l, got, want)
			}
		}
	}
}

// After a step back of the clock, the bucket's instant is later than the expiry of a new hold. The history must still know
// the hold until then.
func TestHold_AfterAStepBack(t *testing.T) {
	l, _ := bucket.NewLimit(10*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Second})
	s, _ := l.Take(bucket.State{}, 100_000_000, bucket.Token)
	now := bucket.Instant(50_000_000)
	s, snap := l.Take(s, now, 5*bucket.Token)
	taken := snap.Taken()
	taken.History = 1
	row := bucket.Row{{Limit: l, State: s}}
	row, taken = row.WithHold(&l, now, taken, now.Add(time.Second), false)
	state := l.Cancel(row[0].State, now+500_000, taken.Cost, taken)
	if got := l.Peek(state, now+500_000, 0, 0).Remaining(); got != 9*bucket.Token {
		t.Errorf("%v remain after the hold was canceled, want 9", got)
	}
}

// The counterexample of the design: two holds of 5 at the same instant, and 4 more after 4 s.
func TestHold_CancellationsSeeEachOther(t *testing.T) {
	l, _ := bucket.NewLimit(10*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Second})
	var s bucket.State
	var taken []bucket.Taken
	for range 2 {
		after, snap := l.Take(s, 0, 5*bucket.Token)
		s = hold(l, after, snap.Taken(), time.Minute)
		taken = append(taken, snap.Taken())
	}
	s, _ = l.Take(s, 4_000_000, 4*bucket.Token)
	for i, want := range []bucket.Tokens{5 * bucket.Token, 6 * bucket.Token} {
		s = l.Cancel(s, 4_000_000, 5*bucket.Token, taken[i])
		if got := l.Peek(s, 4_000_000, 0, 0).Remaining(); got != want {
			t.Errorf("%v remain after %d cancellations, want %v", got, i+1, want)
		}
	}
}

// A bucket has at most MaxHolds holds. Settled holds do not count, nor do expired ones once their epoch has ended.
func TestHold_Count(t *testing.T) {
	l, _ := bucket.NewLimit(1000*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Hour})
	var row bucket.Row
	var taken []bucket.Taken
	now := bucket.Instant(0)
	for range 20 {
		s, _ := row.StateFor(&l, now)
		s, snap := l.Take(s, now, bucket.Token)
		var one bucket.Taken
		row, one = row.WithState(&l, s, now, bucket.Token).WithHold(&l, now, snap.Taken(), now.Add(10*time.Second), false)
		taken = append(taken, one)
		now += 1_000_000
	}
	if got := row.Holds(&l, now); got < 10 || got > 12 {
		t.Errorf("%d holds, want the 10 holds of the last 10 seconds and at most 2 earlier ones", got)
	}
	before := row.Holds(&l, now)
	for i, settled := range taken[15:] {
		if row = row.WithoutHold(&l, now, settled); row.Holds(&l, now) != before-int64(i)-1 {
			t.Errorf("%d holds after %d were settled, want %d", row.Holds(&l, now), i+1, before-int64(i)-1)
		}
	}
	if got := row.Holds(&l, now.Add(time.Minute)); got != 0 {
		t.Errorf("%d holds after all have expired", got)
	}
}

// TestHold_WaitsBehindATakeOfTheSameInstant: take A is admitted at once, and hold B of the same instant waits for A's
// tokens. After B has started, the cancellation of A must not give these tokens to a third take. The history begins with B, or
// has an epoch that begins with B.
func TestHold_WaitsBehindATakeOfTheSameInstant(t *testing.T) {
	l, _, err := bucket.Spec{Capacity: 17, Rate: bucket.Rate{Tokens: 1, Per: 2 * time.Millisecond}, Queue: 24}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	for _, earlier := range []bool{false, true} {
		var s bucket.State
		now := bucket.Instant(time.Minute.Microseconds())
		take := func(cost bucket.Tokens, wait time.Duration) bucket.Snapshot {
			after, snap := l.Reserve(s, now, cost, wait)
			s = after
			return snap
		}
		if earlier {
			s = hold(l, s, take(1, 0).Taken(), time.Second)
			now = now.Add(500 * time.Millisecond)
		}
		a := take(17, 0)
		b := take(13, time.Minute)
		if !a.Allowed || !b.Allowed || b.Wait() != 26*time.Millisecond {
			t.Fatalf("A %+v, B %+v", a, b)
		}
		s = hold(l, s, b.Taken(), time.Second)
		now = now.Add(b.Wait())
		s = l.Cancel(s, now, 17, a.Taken())
		if snap := take(5, 0); snap.Allowed && snap.Wait() == 0 {
			t.Errorf("with an earlier hold %v: 13 and 5 of 17 start at one instant", earlier)
		}
	}
}

// TestHold_WorkWaitsLongerThanTheHistory: a partial cancellation ends the debt before the work of B starts. The history has to
// last until then, although the hold of A has expired. Otherwise the cancellation of A gives B's place away.
func TestHold_WorkWaitsLongerThanTheHistory(t *testing.T) {
	for _, stepped := range []bool{false, true} {
		spec := bucket.Spec{Capacity: 13 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Second}, Queue: 60 * bucket.Token}
		if stepped {
			spec.Algorithm = bucket.AlgorithmStepped
		}
		l, _, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		var s bucket.State
		reserve := func(at time.Duration, cost bucket.Tokens) bucket.Snapshot {
			after, snap := l.Reserve(s, bucket.Instant(at.Microseconds()), cost*bucket.Token, time.Hour)
			s = after
			return snap
		}
		cancel := func(at time.Duration, amount bucket.Tokens, taken bucket.Taken) {
			s = l.Cancel(s, bucket.Instant(at.Microseconds()), amount*bucket.Token, taken)
		}
		a := reserve(0, 7)
		s = hold(l, s, a.Taken(), time.Second)
		b := reserve(0, 13)
		if b.Wait() != 7*time.Second {
			t.Fatalf("B waits %v", b.Wait())
		}
		cancel(4*time.Second, 5, b.Taken()) // 8 tokens of B start at 7 s
		cancel(4*time.Second, 7, a.Taken())
		if c := reserve(8*time.Second, 8); c.Wait() == 0 {
			t.Errorf("stepped %v: 16 tokens start within a second, want at most 14", stepped)
		}
	}
}
