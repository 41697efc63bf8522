// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
)

// versions returns limits that a policy may replace by each other: all algorithms, with and without debt, with
// different rates, periods and capacities.
func versions(t testing.TB) []bucket.Limit {
	t.Helper()
	per := func(tokens int64, d time.Duration) bucket.Rate {
		return bucket.Rate{Tokens: bucket.Tokens(tokens) * bucket.Token, Per: d}
	}
	none := new(bucket.Tokens)
	var limits []bucket.Limit
	for _, s := range []bucket.Spec{
		{Capacity: 100 * bucket.Token, Rate: per(100, time.Minute)},
		{Capacity: 100 * bucket.Token, Rate: per(90, time.Minute)},
		{Capacity: 50 * bucket.Token, Rate: per(100, time.Minute)},
		{Capacity: 100 * bucket.Token, Rate: per(100, time.Hour), MaxReserved: none},
		{Capacity: bucket.Token, Rate: per(100, time.Minute), Queue: 50 * bucket.Token},
		{Capacity: bucket.Token, Rate: per(90, time.Minute), Queue: 60 * bucket.Token},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 100 * bucket.Token, Rate: per(100, time.Minute)},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 100 * bucket.Token, Rate: per(100, time.Hour), Anchor: bucket.AnchorFirst},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 20 * bucket.Token, Rate: per(5, 10*time.Second), MaxReserved: none},
		{Algorithm: bucket.AlgorithmSlidingWindow, Rate: per(100, time.Minute)},
		{Algorithm: bucket.AlgorithmSlidingWindow, Rate: per(100, time.Hour)},
		{Algorithm: bucket.AlgorithmSlidingLog, Rate: per(100, time.Minute)},
		{Algorithm: bucket.AlgorithmSlidingLog, Rate: per(50, time.Hour), MaxReserved: none},
	} {
		l, _, err := s.Compile()
		if err != nil {
			t.Fatal(err)
		}
		limits = append(limits, l)
	}
	return limits
}

// An admission is a take that one version of a limit admitted.
type admission struct {
	at   bucket.Instant
	cost bucket.Tokens
	wait time.Duration // its maximum wait
}

// checkWithin checks that a limit alone would admit the same takes, so they are within its own bound.
func checkWithin(l bucket.Limit, admissions []admission) error {
	var s bucket.State
	sum := bucket.Tokens(0)
	for i, a := range admissions {
		var snap bucket.Snapshot
		if s, snap = l.Reserve(s, a.at, a.cost, a.wait); !snap.Allowed {
			return fmt.Errorf("%v admitted %v in %d takes, which is more than its bound", l, sum+a.cost, i+1)
		}
		sum += a.cost
	}
	return nil
}

// alternate takes cost from one bucket under each limit in turn, and returns the admissions of each limit.
func (s *subject) alternate(r *rand.Rand, key string, limits []bucket.Limit, takes int, pause int64, wait time.Duration) [][]admission {
	s.Helper()
	admitted := make([][]admission, len(limits))
	for i := range takes {
		s.clock.Advance(r.Int64N(pause))
		v := i % len(limits)
		if r.IntN(8) == 0 {
			v = r.IntN(len(limits))
		}
		a := admission{s.clock.Now(), bucket.Tokens(1+r.IntN(20)) * bucket.Token, 0}
		if r.IntN(2) == 0 {
			a.wait = wait
		}
		if limits[v].Queued() {
			a.cost = min(a.cost, bucket.Token)
		}
		if _, ok := s.take(mete.Mode{MaxWait: a.wait}, charge(key, limits[v], a.cost)); ok {
			admitted[v] = append(admitted[v], a)
		}
	}
	return admitted
}

// checkVersionBounds: two or three versions of a limit use one bucket, as in a rolling deploy. Each admits
// at most as much as alone.
func checkVersionBounds(t *testing.T, open Open) {
	nth := 1
	if testing.Short() {
		nth = 3
	}
	checkBoundsOfPairs(t, open, nth)
}

func checkSomeVersionBounds(t *testing.T, open Open) { checkBoundsOfPairs(t, open, 8) }

// checkBoundsOfPairs tests all pairs of versions, or every nth.
func checkBoundsOfPairs(t *testing.T, open Open, nth int) {
	limits := versions(t)
	s := newSubject(t, open)
	for i, a := range limits {
		for j, b := range limits {
			if i == j || (i*len(limits)+j)%nth != 0 {
				continue
			}
			r := rand.New(testseed.PCG(uint64(i), uint64(j)))
			set := []bucket.Limit{a, b}
			if r.IntN(4) == 0 {
				set = append(set, limits[(j+1+r.IntN(len(limits)-1))%len(limits)])
			}
			wait := time.Duration(0)
			if (i+j)%2 == 0 {
				wait = 5 * time.Minute
			}
			admitted := s.alternate(r, fmt.Sprintf("pair%02d.%02d", i, j), set, 60, 100_000+int64(r.IntN(3))*3_000_000, wait)
			for v, l := range set {
				if err := checkWithin(l, admitted[v]); err != nil {
					t.Errorf("%v beside %v: %v", a, b, err)
				}
			}
		}
	}
}

// checkChangeKeepsDeficit: after a change of the limit, the bucket is at most empty and keeps its debt within the
// new debt limit. It has refilled by the old limit until the change.
func checkChangeKeepsDeficit(t *testing.T, open Open) {
	limits := versions(t)
	s := newSubject(t, open)
	for i, a := range limits {
		for j, b := range limits {
			if i == j {
				continue
			}
			r := rand.New(testseed.PCG(uint64(i), uint64(j)))
			key := fmt.Sprintf("change%02d.%02d", i, j)
			for range 1 + r.IntN(3) {
				cost := a.Capacity() * bucket.Tokens(1+r.IntN(4)) / 4
				s.take(mete.Mode{MaxWait: bucket.Forced}, charge(key, a, cost))
				s.clock.Advance(r.Int64N(2_000_000))
			}
			before, _ := s.take(mete.Mode{DryRun: true}, charge(key, a, 0))
			after, _ := s.take(mete.Mode{DryRun: true}, charge(key, b, 0))
			missing := before[0].Missing()
			want := min(missing, a.Capacity(), b.Capacity()) + min(max(missing-a.Capacity(), 0), b.MaxReserved())
			if got := after[0].Missing(); got != want {
				t.Errorf("%v that misses %v becomes %v: misses %v, want %v", a, missing, b, got, want)
			}
			// Only the first take under the new limit changes something.
			s.take(mete.Mode{}, charge(key, b, bucket.MaxTokens))
			snaps, _ := s.take(mete.Mode{DryRun: true}, charge(key, b, b.Capacity()))
			if wait := snaps[0].RetryAfter; want <= b.Capacity() && wait > 0 && wait != bucket.Never {
				s.clock.Advance(wait.Microseconds() - 1)
				if early, allowed := s.take(mete.Mode{DryRun: true}, charge(key, b, b.Capacity())); allowed {
					t.Errorf("%v becomes %v: admitted before its wait: %s", a, b, show(early))
				}
				s.clock.Advance(1)
				if late, allowed := s.take(mete.Mode{}, charge(key, b, b.Capacity())); !allowed {
					t.Errorf("%v becomes %v: denied after its wait: %s", a, b, show(late))
				}
			}
		}
	}
}

// checkEndedOverride: a client spends all of a temporary high limit. Under its old limit, the
// bucket is then at most empty.
func checkEndedOverride(t *testing.T, open Open) {
	window := func(tokens int64) bucket.Limit {
		l, _, err := bucket.Spec{
			Algorithm: bucket.AlgorithmStepped, Capacity: bucket.Tokens(tokens) * bucket.Token,
			Rate: bucket.Rate{Tokens: bucket.Tokens(tokens) * bucket.Token, Per: time.Hour},
		}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	s, usual, raised := newSubject(t, open), window(10), window(1000)
	for range 10 {
		s.take(mete.Mode{}, charge("k", usual, bucket.Token))
	}
	if _, allowed := s.take(mete.Mode{}, charge("k", raised, 990*bucket.Token)); !allowed {
		t.Error("the raised limit denied the difference")
	}
	snaps, allowed := s.take(mete.Mode{}, charge("k", usual, bucket.Token))
	if allowed || snaps[0].RetryAfter > time.Hour {
		t.Errorf("after the override: allowed %v, retry after %v; want denied until the window ends", allowed, snaps[0].RetryAfter)
	}
	s.clock.Advance(snaps[0].RetryAfter.Microseconds())
	s.assertRemaining("k", usual, usual.Capacity())
}

// checkCancellationBound: takes with a wait are admitted and canceled in random order. The started work
// stays within capacity + rate·t in every interval.
func checkCancellationBound(t *testing.T, open Open) {
	s := newSubject(t, open)
	for seed := range uint64(12) {
		r := rand.New(testseed.PCG(seed, 11))
		capacity := bucket.Tokens(1+r.IntN(20)) * bucket.Token
		l := limit(t, capacity, []string{"1/1s", "5/1s", "2/1m"}[seed%3])
		key := fmt.Sprintf("canceled%02d", seed)
		type work struct {
			start  bucket.Instant
			refund mete.Refund
		}
		var started []work
		for range 60 {
			s.clock.Advance([]int64{0, 0, 0, 1, 1_000_000, 2_500_000, r.Int64N(30_000_000)}[r.IntN(7)])
			if len(started) > 0 && r.IntN(2) == 0 {
				i := r.IntN(len(started))
				back := started[i].refund
				if r.IntN(3) == 0 {
					back.Cost = bucket.Tokens(r.Int64N(int64(back.Cost) + 1))
				}
				if err := s.store.Refund(t.Context(), []mete.Refund{back}, ""); err != nil {
					t.Fatal(err)
				}
				if started[i].refund.Cost -= back.Cost; started[i].refund.Cost == 0 {
					started = append(started[:i], started[i+1:]...)
				} else {
					started[i].refund.Taken.Cost = 0 // a take is settled once
				}
				continue
			}
			c := charge(key, l, bucket.Tokens(1+r.Int64N(int64(capacity))))
			if snaps, ok := s.take(mete.Mode{MaxWait: time.Minute}, c); ok {
				at := s.clock.Now().Add(snaps[0].Wait())
				started = append(started, work{at, mete.Refund{Charge: c, Taken: snaps[0].Taken()}})
			}
		}
		for _, from := range started {
			for _, to := range started {
				sum := bucket.Tokens(0)
				for _, w := range started {
					if from.start <= w.start && w.start <= to.start {
						sum += w.refund.Cost
					}
				}
				n, p := l.Refill()
				if to.start >= from.start && int64(sum)*p > int64(capacity)*p+(int64(to.start-from.start)+1)*int64(n) {
					t.Fatalf("seed %d: %v started in %v of %v", seed, sum, time.Duration(to.start-from.start)*time.Microsecond, l)
				}
			}
		}
	}
}
