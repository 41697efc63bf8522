// SPDX-License-Identifier: Apache-2.0

package adaptive_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/adaptive"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
)

// hand is a controller with a manual clock.
type hand struct {
	*adaptive.Controller
	now bucket.Instant
}

func byHand(t testing.TB, c adaptive.Config) *hand {
	t.Helper()
	h := &hand{now: 1e15}
	c.Now = func() bucket.Instant { return h.now }
	var err error
	if h.Controller, err = adaptive.New(c); err != nil {
		t.Fatal(err)
	}
	return h
}

// second observes twenty requests in a second.
func (h *hand) second(latency time.Duration, err error) {
	for range 20 {
		h.now += 50_000
		h.Observe(latency, err)
	}
}

func TestNew_Defaults(t *testing.T) {
	for _, c := range []adaptive.Config{{}, {Law: adaptive.LawGradient}, {Target: time.Second}, {Floor: 1}} {
		a, err := adaptive.New(c)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if a.Factor() != 1 || a.Scale(1234) != 1234 {
			t.Errorf("%+v: factor %v, 1.234 scaled %v; want 1, 1.234", c, a.Factor(), a.Scale(1234))
		}
	}
}

func TestNew_Mistakes(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, tt := range []struct {
		c    adaptive.Config
		want string
	}{
		{adaptive.Config{Law: 2}, "law 2 is unknown"},
		{adaptive.Config{Floor: -0.5}, "floor -0.5"},
		{adaptive.Config{Floor: 1.01}, "floor 1.01"},
		{adaptive.Config{Floor: 1e-9}, "floor 1e-09"},
		{adaptive.Config{Floor: nan}, "floor NaN"},
		{adaptive.Config{Failures: 1}, "failures 1"},
		{adaptive.Config{Failures: -1}, "failures -1"},
		{adaptive.Config{Failures: nan}, "failures NaN"},
		{adaptive.Config{Backoff: 1}, "backoff 1"},
		{adaptive.Config{Backoff: nan}, "backoff NaN"},
		{adaptive.Config{Step: inf}, "step +Inf"},
		{adaptive.Config{Step: nan}, "step NaN"},
		{adaptive.Config{Interval: time.Microsecond}, "interval 1µs"},
		{adaptive.Config{Interval: -time.Second}, "interval -1s"},
		{adaptive.Config{Target: -1}, "target -1ns"},
		{adaptive.Config{Target: 2 * time.Hour}, "target 2h0m0s"},
		{adaptive.Config{Tolerance: 2}, "tolerance 2"},
		{adaptive.Config{Law: adaptive.LawGradient, Tolerance: 0.9}, "tolerance 0.9"},
		{adaptive.Config{Law: adaptive.LawGradient, Tolerance: nan}, "tolerance NaN"},
		{adaptive.Config{Law: adaptive.LawGradient, Target: 1}, "target 1ns"},
	} {
		_, err := adaptive.New(tt.c)
		if !errors.Is(err, adaptive.ErrConfig) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v, want %q", tt.c, err, tt.want)
		}
	}
	_, err := adaptive.New(adaptive.Config{Floor: 2, Step: 2})
	if err == nil || !strings.Contains(err.Error(), "floor 2") || !strings.Contains(err.Error(), "step 2") {
		t.Errorf("two mistakes: %v, want both", err)
	}
}

func TestScale(t *testing.T) {
	r := rand.New(testseed.PCG(20260101, 1))
	h := byHand(t, adaptive.Config{Floor: 0.001, Backoff: 0.83})
	for factor := h.Factor(); ; factor = h.Factor() {
		for range 200 {
			cost := bucket.Tokens(r.Int64N(1 << (1 + r.IntN(53))))
			want := new(big.Rat).Quo(new(big.Rat).SetInt64(int64(cost)), new(big.Rat).SetFloat64(factor))
			got := h.Scale(cost)
			low, high := new(big.Rat).SetInt64(int64(got)-1), new(big.Rat).SetInt64(int64(got))
			if got != bucket.MaxTokens && (low.Cmp(want) >= 0 || high.Cmp(want) < 0) {
				t.Fatalf("factor %v: %v scaled %v, want %v rounded up", factor, cost, got, want.FloatString(6))
			}
		}
		for _, cost := range []bucket.Tokens{0, -1, math.MinInt64} {
			if got := h.Scale(cost); got != cost {
				t.Errorf("factor %v: %d scaled %d, want it as it is", factor, cost, got)
			}
		}
		if factor < 1 && h.Scale(bucket.MaxTokens) != bucket.MaxTokens || h.Scale(math.MaxInt64) < bucket.MaxTokens {
			t.Errorf("factor %v: the most there is scaled %v", factor, h.Scale(bucket.MaxTokens))
		}
		if h.second(time.Millisecond, errServer); h.Factor() == factor && factor < 0.0011 {
			break
		}
	}
}

func TestObserve_CutsAndGrows(t *testing.T) {
	h := byHand(t, adaptive.Config{Target: 100 * time.Millisecond})
	want := func(what string, factor float64) {
		t.Helper()
		if got := h.Factor(); math.Abs(got-factor) > 1e-4 {
			t.Errorf("%s: factor %v, want %v", what, got, factor)
		}
	}
	h.second(100*time.Millisecond, nil)
	want("as slow as may be", 1)
	h.second(101*time.Millisecond, nil)
	want("slower", 0.9)
	for range 19 { // requests that waited behind the overload
		h.now += 50_000
		h.Observe(101*time.Millisecond, nil)
	}
	want("still slower in the second after the cut", 0.9)
	h.second(time.Millisecond, nil)
	h.second(time.Millisecond, nil)
	want("two good seconds later", 0.92)
	for range 20 {
		h.second(time.Millisecond, nil)
	}
	want("after the recovery", 1)
}

func TestObserve_Canceled(t *testing.T) {
	h := byHand(t, adaptive.Config{})
	for range 10 {
		h.second(time.Hour, fmt.Errorf("stopped: %w", context.Canceled))
	}
	if h.Factor() != 1 {
		t.Errorf("factor %v after canceled calls, want 1", h.Factor())
	}
	for range 3 {
		h.second(time.Hour, context.DeadlineExceeded)
	}
	if h.Factor() >= 1 {
		t.Error("calls that ran into their deadline do not count")
	}
}

func TestBegin(t *testing.T) {
	h := byHand(t, adaptive.Config{Target: 50 * time.Millisecond})
	for range 100 {
		call := h.Begin()
		h.now += 60_000
		call.Done(nil)
	}
	if h.Factor() >= 1 {
		t.Error("calls that took 60 ms of 50 are not counted as slow")
	}
	adaptive.Call{}.Done(nil)
}

// TestObserve_AnyInput keeps the factor between floor and 1 for any input and any clock.
func TestObserve_AnyInput(t *testing.T) {
	for _, law := range []adaptive.Law{adaptive.LawAIMD, adaptive.LawGradient} {
		r := rand.New(testseed.PCG(20260101, uint64(law)))
		h := byHand(t, adaptive.Config{Law: law, Floor: 0.3})
		lowered, raised, before := 0, 0, 1.0
		for range 200_000 {
			switch r.IntN(1000) {
			case 0:
				h.now += bucket.Instant(r.Int64N(1e12))
			case 1:
				h.now -= bucket.Instant(r.Int64N(1e7))
			default:
				h.now += bucket.Instant(r.Int64N(1 << (1 + r.IntN(24))))
			}
			latency := time.Duration(r.Uint64())
			if r.IntN(3) > 0 {
				latency = time.Duration(r.Int64N(1 << r.IntN(40)))
			}
			var err error
			if r.IntN(15) == 0 {
				err = errServer
			}
			h.Observe(latency, err)
			factor := h.Factor()
			if !(factor >= 0.3 && factor <= 1) {
				t.Fatalf("%v: factor %v, want between 0.3 and 1", law, factor)
			}
			if factor < before {
				lowered++
			} else if factor > before {
				raised++
			}
			before = factor
		}
		if lowered < 300 || raised < 300 {
			t.Errorf("%v: lowered %d times, raised %d times: the run is too short to mean anything", law, lowered, raised)
		}
	}
}

func TestController_Concurrent(t *testing.T) {
	c, err := adaptive.New(adaptive.Config{Interval: time.Millisecond, Target: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 2000 {
				if got := c.Scale(bucket.Token); got < bucket.Token || got > 10*bucket.Token+1 {
					t.Errorf("a token scaled %v, want from 1 to 10", got)
				}
				c.Observe(time.Duration(n%3)*time.Millisecond, nil)
				c.Begin().Done([]error{nil, errServer}[i%2])
			}
		})
	}
	wg.Wait()
}

func TestLaw_String(t *testing.T) {
	for l, want := range map[adaptive.Law]string{adaptive.LawAIMD: "aimd", adaptive.LawGradient: "gradient", 7: "law 7"} {
		if l.String() != want {
			t.Errorf("law %d is %q, want %q", uint8(l), l, want)
		}
	}
}

func BenchmarkScale(b *testing.B) {
	h := byHand(b, adaptive.Config{})
	for range 3 {
		h.second(0, errServer)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			h.Scale(bucket.Token)
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	c, err := adaptive.New(adaptive.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Begin().Done(nil)
		}
	})
}
