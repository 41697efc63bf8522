// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// A job is an admitted take that has not been completely canceled.
type job struct {
	start bucket.Instant
	cost  bucket.Tokens // what it keeps
	taken bucket.Taken
	over  bool // it has been settled
}

// play takes, delays, cancels and settles in random order, and returns the work that starts. One of so many takes is a
// hold; 0 is none.
func play(r *rand.Rand, l bucket.Limit, steps, holds int) []job {
	_, p := l.Refill()
	pause := max(int64(float64(p)/10), 1)
	if l.Algorithm() == bucket.AlgorithmContinuous {
		pause = max(l.TimeFor(l.Capacity()/8+1).Microseconds(), 1)
	}
	var s bucket.State
	var jobs []job
	now := bucket.Instant(1_700_000_000_000_000)
	for range steps {
		now += bucket.Instant([]int64{0, 0, 0, 1, pause, 2 * pause, r.Int64N(20 * pause)}[r.IntN(7)])
		if len(jobs) > 0 && r.IntN(2) == 0 {
			i := len(jobs) - 1 - min(r.IntN(len(jobs)), r.IntN(len(jobs)))
			if jobs[i].over {
				continue
			}
			back := jobs[i].cost
			if r.IntN(3) == 0 {
				back = bucket.Tokens(r.Int64N(int64(back) + 1))
			}
			s = l.Cancel(s, now, back, jobs[i].taken)
			if jobs[i].cost, jobs[i].over = jobs[i].cost-back, true; jobs[i].cost == 0 {
				jobs = slices.Delete(jobs, i, i+1)
			}
			continue
		}
		most := max(min(l.Capacity(), bucket.Tokens(1<<40)), 1)
		cost, wait := bucket.Tokens(1+r.Int64N(int64(most))), time.Duration(0)
		if r.IntN(2) == 0 {
			wait = time.Duration(r.Int64N(40*pause)) * time.Microsecond
		}
		after, snap := l.Reserve(s, now, cost, wait)
		if s = after; snap.Allowed {
			if holds > 0 && r.IntN(holds) == 0 {
				s = holdOrAwait(r, l, s, snap.Taken(), time.Duration(1+r.Int64N(pause<<r.IntN(9)))*time.Microsecond)
			}
			jobs = append(jobs, job{now.Add(snap.Wait()), cost, snap.Taken(), false})
		}
	}
	slices.SortStableFunc(jobs, func(a, b job) int { return int(a.start - b.start) })
	return jobs
}

// TestCancel_NeverStartsMoreThanTheBound: after any takes, delays, cancellations and settlements, the work that
// starts in any interval is at most capacity + rate·t. If a delayed client that disconnects got its tokens
// back, its place could be assigned twice.
func TestCancel_NeverStartsMoreThanTheBound(t *testing.T) {
	r := random(140)
	for range 6000 {
		l := smallLimit(r)
		n, p := l.Refill()
		jobs := play(r, l, 40, r.IntN(4))
		for i := range jobs {
			sum := bucket.Tokens(0)
			for _, j := range jobs[i:] {
				sum += j.cost
				// Each start is rounded up to a microsecond.
				elapsed := int64(j.start-jobs[i].start) + 1
				if int64(sum)*p > int64(l.Capacity())*p+elapsed*int64(n) {
					t.Fatalf("%v: %v start within %d µs, the capacity is %v", l, sum, elapsed, l.Capacity())
				}
			}
		}
	}
}

// smallLimit returns a token bucket or a leaky bucket of few tokens, which is often in debt.
func smallLimit(r *rand.Rand) bucket.Limit {
	for {
		s := bucket.Spec{
			Capacity: bucket.Tokens(1 + r.IntN(20)),
			Rate:     bucket.Rate{Tokens: bucket.Tokens(1 + r.IntN(5)), Per: time.Duration(1+r.IntN(7)) * time.Millisecond},
		}
		if most := bucket.Tokens(r.IntN(60)); r.IntN(2) == 0 {
			s.Queue = most + 1
		} else {
			s.MaxReserved = &most
		}
		if l, _, err := s.Compile(); err == nil {
			return l
		}
	}
}

// TestCancel_OfSteppedLimits: the work that starts in an interval is at most the capacity plus the tokens of
// each refill in it.
func TestCancel_OfSteppedLimits(t *testing.T) {
	r := random(141)
	for range 4000 {
		most := bucket.Tokens(r.IntN(60))
		per := time.Duration(1+r.IntN(20)) * time.Millisecond
		s := bucket.Spec{
			Algorithm: bucket.AlgorithmStepped, Capacity: bucket.Tokens(1 + r.IntN(20)), MaxReserved: &most,
			Rate: bucket.Rate{Tokens: bucket.Tokens(1 + r.IntN(10)), Per: per},
		}
		l, _, err := s.Compile()
		if err != nil {
			t.Fatal(err)
		}
		jobs := play(r, l, 40, r.IntN(4))
		for i := range jobs {
			sum := bucket.Tokens(0)
			for _, j := range jobs[i:] {
				sum += j.cost
				refills := int64(j.start)/per.Microseconds() - int64(jobs[i].start-1)/per.Microseconds()
				if sum > l.Capacity()+bucket.Tokens(refills)*s.Rate.Tokens {
					t.Fatalf("%v: %v start with %d refills, the capacity is %v", l, sum, refills, l.Capacity())
				}
			}
		}
	}
}

// TestCancel_OfSlidingLimits: a log admits at most its limit in any window, and two counters at most twice that
// per window.
func TestCancel_OfSlidingLimits(t *testing.T) {
	r := random(142)
	for range 4000 {
		kind := []bucket.Algorithm{bucket.AlgorithmSlidingWindow, bucket.AlgorithmSlidingLog}[r.IntN(2)]
		per := time.Duration(5+r.IntN(20)) * time.Millisecond
		l, _, err := bucket.Spec{Algorithm: kind, Rate: bucket.Rate{Tokens: bucket.Tokens(1 + r.IntN(20)), Per: per}}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		most := l.Capacity()
		if kind == bucket.AlgorithmSlidingWindow {
			most = 2*most - 1
		}
		jobs := play(r, l, 40, r.IntN(4))
		for i := range jobs {
			sum := bucket.Tokens(0)
			for _, j := range jobs[i:] {
				if int64(j.start-jobs[i].start) >= per.Microseconds() {
					break
				}
				if sum += j.cost; sum > most {
					t.Fatalf("%v: %v start in one window", l, sum)
				}
			}
		}
	}
}

// TestCancel_IsNeverFullerThanWithoutTheTake: after a cancellation the bucket holds at most as much as without
// the take. If the first take starts the intervals, the smallest take starts them in the other run.
func TestCancel_IsNeverFullerThanWithoutTheTake(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rand.Rand, kind bucket.Spec) {
		for range 2000 {
			o, now := randomOf(r, kind), 1_000_000_000+upTo(r, 1<<45)
			l := o.limit
			_, p := l.Refill()
			at := bucket.Instant(now)
			var with, without bucket.State
			cost := bucket.Tokens(upTo(r, int64(l.Capacity())))
			with, snap := l.Take(with, at, cost)
			if !snap.Allowed {
				continue
			}
			begun := bucket.Tokens(0)
			if kind.Anchor == bucket.AnchorFirst && cost > 0 { // the take began the interval, which stays begun
				begun = 1
				without, _ = l.Take(without, at, begun)
			}
			for range r.IntN(6) {
				at += bucket.Instant(upTo(r, p))
				more := bucket.Tokens(upTo(r, int64(l.Capacity())/3+1))
				after, other := l.Take(with, at, more)
				if with = after; other.Allowed {
					without, _ = l.Take(without, at, more)
				}
			}
			at += bucket.Instant(upTo(r, 2*p))
			got := l.Peek(l.Cancel(with, at, cost, snap.Taken()), at, 0, 0)
			if want := l.Peek(without, at, 0, 0); got.Missing() < want.Missing()-begun {
				t.Fatalf("%v: %v canceled: misses %v, without the take %v", l, cost, got.Missing(), want.Missing())
			}
		}
	})
}

// holdOrAwait returns the state after an admitted take becomes a hold, or awaits its settlement.
func holdOrAwait(r *rand.Rand, l bucket.Limit, s bucket.State, t bucket.Taken, ttl time.Duration) bucket.State {
	if r.IntN(2) == 0 {
		return await(l, s, t, ttl)
	}
	return hold(l, s, t, ttl)
}

func await(l bucket.Limit, s bucket.State, t bucket.Taken, ttl time.Duration) bucket.State {
	return bucket.Row{{Limit: l, State: s}}.WithAwait(&l, t.At, t, ttl)[0].State
}

// hold returns the state after an admitted take becomes a hold.
func hold(l bucket.Limit, s bucket.State, t bucket.Taken, ttl time.Duration) bucket.State {
	row, _ := bucket.Row{{Limit: l, State: s}}.WithHold(&l, t.At, t, t.At.Add(ttl), false)
	return row[0].State
}
