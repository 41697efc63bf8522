// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
)

// compile returns the limit or fails the test.
func compile(t *testing.T, spec bucket.Spec) bucket.Limit {
	t.Helper()
	l, _, err := spec.Compile()
	if err != nil {
		t.Fatalf("%+v: %v", spec, err)
	}
	return l
}

func TestShare(t *testing.T) {
	none, ten := bucket.Tokens(0), 10*bucket.Token
	for _, tc := range []struct {
		name  string
		spec  bucket.Spec
		n     int
		least bucket.Tokens
		want  bucket.Spec
	}{
		{"alone", bucket.Spec{Capacity: 20_000, Rate: bucket.PerSecond(10_000)}, 1, 30_000,
			bucket.Spec{Capacity: 20_000, Rate: bucket.PerSecond(10_000)}},
		{"three", bucket.Spec{Capacity: 20_000, Rate: bucket.PerSecond(10_000)}, 3, bucket.Token,
			bucket.Spec{Capacity: 6_666, Rate: bucket.Rate{Tokens: 10_000, Per: 3 * time.Second}}},
		{"a token at least", bucket.Spec{Capacity: 2_000, Rate: bucket.PerSecond(10_000)}, 5, bucket.Token,
			bucket.Spec{Capacity: 1_000, Rate: bucket.PerSecond(2_000)}},
		{"what is asked for", bucket.Spec{Capacity: 20_000, Rate: bucket.PerSecond(10_000)}, 5, 30_000,
			bucket.Spec{Capacity: 20_000, Rate: bucket.PerSecond(2_000)}},
		{"no debt", bucket.Spec{Capacity: 20_000, Rate: bucket.PerSecond(10_000), MaxReserved: &none}, 2, 1,
			bucket.Spec{Capacity: 10_000, Rate: bucket.PerSecond(5_000), MaxReserved: &none}},
		{"a debt", bucket.Spec{Capacity: 20_000, Rate: bucket.PerSecond(10_000), MaxReserved: new(2 * ten)}, 2, 1,
			bucket.Spec{Capacity: 10_000, Rate: bucket.PerSecond(5_000), MaxReserved: &ten}},
		{"a queue", bucket.Spec{Capacity: 1_000, Rate: bucket.PerSecond(10_000), Queue: 5_000}, 10, 3_000,
			bucket.Spec{Capacity: 1_000, Rate: bucket.PerSecond(1_000), Queue: 2_000}},
		{"steps", bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 10_000, Rate: bucket.Rate{Tokens: 10_000, Per: time.Minute}}, 4, 1,
			bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 2_500, Rate: bucket.Rate{Tokens: 2_500, Per: time.Minute}}},
		{"window", bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.Rate{Tokens: 10_000, Per: time.Minute}}, 4, 1,
			bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.Rate{Tokens: 2_500, Per: time.Minute}}},
		{"log", bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: 10_000, Per: time.Minute}}, 20, bucket.Token,
			bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: 1_000, Per: time.Minute}}},
	} {
		got, want := compile(t, tc.spec).Share(tc.n, tc.least), compile(t, tc.want)
		if got != want {
			t.Errorf("%s: %v with a debt of %v, want %v with %v", tc.name, got, got.MaxReserved(), want, want.MaxReserved())
		}
	}
}

// The shares of a limit add up to it and fit the arithmetic.
func TestShare_NeverMoreThanTheWhole(t *testing.T) {
	r := rand.New(testseed.PCG(1, 7))
	for range 20_000 {
		spec := bucket.Spec{
			Algorithm: bucket.Algorithm(r.IntN(4)),
			Rate:      bucket.Rate{Tokens: 1 + bucket.Tokens(r.Int64N(1<<(1+r.IntN(30)))), Per: time.Duration(1+r.Int64N(1<<(1+r.IntN(45)))) * time.Microsecond},
		}
		if spec.Algorithm < bucket.AlgorithmSlidingWindow {
			spec.Capacity = bucket.Tokens(1 + r.Int64N(1<<(1+r.IntN(40))))
		}
		l, _, err := spec.Compile()
		if err != nil {
			continue
		}
		n := 1 + r.IntN(1<<(1+r.IntN(12)))
		s := l.Share(n, 0)
		if whole := max(l.Capacity(), bucket.Tokens(n)); s.Capacity()*bucket.Tokens(n) > whole || s.Capacity() < 0 || s.MaxReserved() < 0 {
			t.Fatalf("%v over %d: %v, which may owe %v", l, n, s, s.MaxReserved())
		}
		wholeN, wholeP := l.Refill()
		partN, partP := s.Refill()
		if s.Capacity() > 1 && float64(partN)*float64(n)/float64(partP) > max(float64(wholeN), float64(n))/float64(wholeP)*(1+1e-12) {
			t.Fatalf("%v over %d refills %v/%d, more than %v/%d", l, n, partN, partP, wholeN, wholeP)
		}
		if after, snap := s.Reserve(bucket.State{}, 5, s.Capacity(), 0); !snap.Allowed || after.Spent < 0 || snap.Missing() != s.Capacity() {
			t.Fatalf("%v over %d: a full share misses %v after %v was taken", l, n, snap.Missing(), s.Capacity())
		}
	}
}

// A snapshot's state evolves like its bucket.
func TestSnapshot_State(t *testing.T) {
	for _, spec := range []bucket.Spec{
		{Capacity: 20_000, Rate: bucket.PerSecond(10_000)},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 20_000, Rate: bucket.Rate{Tokens: 7_000, Per: time.Second}},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 20_000, Rate: bucket.Rate{Tokens: 7_000, Per: time.Second}, Anchor: bucket.AnchorFirst},
		{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.Rate{Tokens: 20_000, Per: time.Second}},
		{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: 20_000, Per: time.Second}},
	} {
		l := compile(t, spec)
		const start bucket.Instant = 1_700_000_000_300_000
		state, snap := l.Reserve(bucket.State{}, start, 15_000, 0)
		if snap.Missing() != 15_000 {
			t.Errorf("%v: misses %v, want 15", l, snap.Missing())
		}
		seen := snap.State(start)
		for passed := range bucket.Instant(40) {
			now := start + passed*100_000
			if got, want := l.Peek(seen, now, 0, 0), l.Peek(state, now, 0, 0); got.Missing() != want.Missing() || got.FullAfter() != want.FullAfter() {
				t.Errorf("%v after %d µs: misses %v, full after %v; want %v, %v", l, now-start, got.Missing(), got.FullAfter(), want.Missing(), want.FullAfter())
			}
		}
	}
	debt, snap := compile(t, bucket.Spec{Capacity: 20_000, Rate: bucket.PerSecond(10_000)}).Reserve(bucket.State{}, 5, 30_000, bucket.Forced)
	if snap.Missing() != 30_000 || snap.State(5) != debt {
		t.Errorf("a debt of 10 beyond 20: misses %v, state %+v; want 30, %+v", snap.Missing(), snap.State(5), debt)
	}
}

// The debt is the amount spent beyond the capacity, to the thousandth, in every algorithm with debt. It shrinks
// as the bucket refills.
func TestOwed(t *testing.T) {
	const token = bucket.Token
	tenIn := func(per time.Duration) bucket.Rate { return bucket.Rate{Tokens: 10 * token, Per: per} }
	for _, tc := range []struct {
		name  string
		spec  bucket.Spec
		spend bucket.Tokens
		owed  bucket.Tokens
		at    time.Duration // after the spending
		later bucket.Tokens
	}{
		{"continuous", bucket.Spec{Capacity: 5 * token, Rate: tenIn(time.Second)}, 12_250, 7_250, 500 * time.Millisecond, 2_250},
		{"nothing", bucket.Spec{Capacity: 5 * token, Rate: tenIn(time.Second)}, 5 * token, 0, 0, 0},
		{"paid back", bucket.Spec{Capacity: 5 * token, Rate: tenIn(time.Second)}, 6 * token, token, 200 * time.Millisecond, 0},
		{"queue", bucket.Spec{Capacity: token, Rate: tenIn(time.Second), Queue: 4 * token}, 3 * token, 2 * token, 50 * time.Millisecond, 1_500},
		{"window", bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 10 * token, Rate: tenIn(time.Minute)}, 14 * token, 4 * token, 30 * time.Second, 4 * token},
		{"sliding log", bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: tenIn(time.Minute)}, 11 * token, token, time.Second, token},
	} {
		l := compile(t, tc.spec)
		state, taken := l.Reserve(bucket.State{}, 0, tc.spend, bucket.Forced)
		if !taken.Allowed || taken.Debt() != tc.owed {
			t.Errorf("%s: after %v were spent, %v are owed, want %v", tc.name, tc.spend, taken.Debt(), tc.owed)
		}
		if got := l.Peek(state, bucket.Instant(0).Add(tc.at), 0, 0).Debt(); got != tc.later {
			t.Errorf("%s: after %v, %v are owed, want %v", tc.name, tc.at, got, tc.later)
		}
	}
}
