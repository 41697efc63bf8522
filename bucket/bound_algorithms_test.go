// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// mostIn returns the most that l may admit between two instants, both included: guarantee G1 for each
// algorithm. It is −1 without a guarantee: a sliding limit has none for more than one window.
func mostIn(o *oracleLimit, from, to int64) *big.Int {
	n, p := o.limit.Refill()
	times := int64(0)
	switch most := big.NewInt(int64(o.limit.Capacity())); o.limit.Algorithm() {
	case bucket.AlgorithmContinuous:
		refilled := new(big.Rat).Mul(o.rate, big.NewRat(to-from, 1))
		return most.Add(most, new(big.Int).Div(refilled.Num(), refilled.Denom()))
	case bucket.AlgorithmStepped:
		if times = (floorTo(to, o.start, p) - floorTo(from, o.start, p)) / p; o.limit.Anchor() == bucket.AnchorFirst {
			times = (to - from + p - 1) / p // beginnings are an interval apart
		}
		if o.starts != nil {
			first, _ := slices.BinarySearch(o.starts, from+1)
			last, _ := slices.BinarySearch(o.starts, to+1)
			times = int64(last - first)
		}
		return most.Add(most, new(big.Int).Mul(big.NewInt(times), big.NewInt(int64(n))))
	case bucket.AlgorithmSlidingWindow:
		if to-from < p {
			return most.Sub(most.Lsh(most, 1), big.NewInt(1)) // less than twice the limit
		}
	case bucket.AlgorithmSlidingLog:
		if to-from < p {
			return most
		}
	}
	return big.NewInt(-1)
}

func checkMost(t *testing.T, o *oracleLimit, admitted []admission) {
	t.Helper()
	for i, a := range admitted {
		sum := new(big.Int)
		for _, b := range admitted[i:] {
			sum.Add(sum, big.NewInt(b.cost))
			if most := mostIn(o, a.at, b.at); most.Sign() >= 0 && sum.Cmp(most) > 0 {
				t.Fatalf("%v from %d: %v thousandths admitted from %d to %d, at most %v: %v", o.limit, o.start, sum, a.at, b.at, most, admitted[i:])
			}
		}
	}
}

// hammer takes random costs from s, mostly as early as possible, with a clock that also steps back. It returns
// the admissions at the latest instant that an admitted caller has seen.
func hammer(r *rand.Rand, o *oracleLimit, s bucket.State, now int64) (admitted []admission) {
	l, latest := o.limit, int64(0)
	for range 40 {
		at := now
		if r.IntN(6) == 0 {
			at -= upTo(r, min(now, 2*l.TimeFor(l.Capacity()).Microseconds()))
		}
		cost := 1 + upTo(r, max(int64(l.Capacity())-1, 0))
		var snap bucket.Snapshot
		if s, snap = l.Reserve(s, bucket.Instant(at), bucket.Tokens(cost), -1); snap.Allowed {
			latest = max(latest, at)
			admitted = append(admitted, admission{latest, cost})
		}
		switch retry := snap.RetryAfter; {
		case r.IntN(4) == 0:
			now = max(walk(r, o, now), now)
		case !snap.Allowed && retry < time.Hour*1e5:
			now = max(at+retry.Microseconds(), now)
		}
		now = min(now, 1<<52)
	}
	return admitted
}

// TestEveryAlgorithm_KeepsItsBound is guarantee G1.
func TestEveryAlgorithm_KeepsItsBound(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rand.Rand, kind bucket.Spec) {
		total := 0
		for range 200 {
			o := randomOf(r, kind)
			list := hammer(r, o, bucket.State{}, upTo(r, 1<<50))
			checkMost(t, o, list)
			total += len(list)
		}
		if total < 2000 {
			t.Errorf("%d admissions: the schedules do not reach the bound", total)
		}
	})
}

// TestChangedAlgorithm_KeepsItsBound: a state of another limit never yields more than a fresh bucket.
func TestChangedAlgorithm_KeepsItsBound(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rand.Rand, kind bucket.Spec) {
		for range 250 {
			_, s, now := wornOf(r, kinds[r.IntN(len(kinds))].spec)
			o := randomOf(r, kind)
			checkMost(t, o, hammer(r, o, s, max(now, int64(s.AsOf))))
		}
	})
}

// TestSlidingLog_ReachesTheBound: a client that takes as early as possible gets the whole limit in every window.
func TestSlidingLog_ReachesTheBound(t *testing.T) {
	l, _, err := bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: 10_000, Per: time.Minute}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	var s bucket.State
	admitted := 0
	for now := bucket.Instant(0); now < 600e6; {
		var snap bucket.Snapshot
		if s, snap = l.Take(s, now, bucket.Token); snap.Allowed {
			admitted++
			now += 1e6
		} else {
			now = now.Add(snap.RetryAfter)
		}
	}
	if admitted != 100 {
		t.Errorf("%d admitted in ten minutes of ten a minute, want 100", admitted)
	}
}

// TestSlidingWindow_NearlyReachesTwiceTheLimit: the bound is tight.
func TestSlidingWindow_NearlyReachesTwiceTheLimit(t *testing.T) {
	l, _, err := bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.Rate{Tokens: 10_000, Per: time.Minute}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	s, _ := l.Take(bucket.State{}, 60e6-1, 10_000)
	late := l.Peek(s, 120e6-2, 0, 0).Remaining()
	if want := bucket.Tokens(9997); late != want { // of 10 000, one 4096th still counts: 2.4, rounded up
		t.Errorf("just before the full window's second is over: %v, want %v", late, want)
	}
}

// TestLeakyBucket_SpacesItsOutput: the queue releases one token at a time.
func TestLeakyBucket_SpacesItsOutput(t *testing.T) {
	l, _, err := bucket.Spec{Capacity: bucket.Token, Rate: bucket.Rate{Tokens: 7000, Per: time.Second}, Queue: 5 * bucket.Token}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	r, now, last, denied := random(130), int64(1<<40), int64(0), 0
	var s bucket.State
	for range 2000 {
		var snap bucket.Snapshot
		if s, snap = l.Take(s, bucket.Instant(now), bucket.Token); snap.Allowed {
			start := now + snap.Wait().Microseconds()
			if start-last < 142_857-1 { // a seventh of a second, each start rounded up
				t.Fatalf("starts at %d and %d, closer than a seventh of a second", last, start)
			}
			if wait := snap.Wait(); wait > 714_286*time.Microsecond {
				t.Fatalf("a wait of %v in a queue of five", wait)
			}
			last = start
		} else {
			denied++
		}
		now += r.Int64N(200_000)
	}
	if denied < 100 {
		t.Errorf("%d denied: the queue never fills", denied)
	}
}
