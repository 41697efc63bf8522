// SPDX-License-Identifier: Apache-2.0

package migrating_test

import (
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// Convex compared "value < consuming" after the subtraction: it admitted 9 of 10 requests, and never a cost of 6 of 10.
func TestConvex_WholeCapacity(t *testing.T) {
	play(t, tokenBucket(t, 10, "10/1m"),
		step{0, 6, true, 0}, step{0, 4, true, 0}, step{0, 1, false, 6 * time.Second})
	play(t, tokenBucket(t, 10, "10/1m"), step{0, 10, true, 0})
}

// In Convex, a clock that stepped back by 30 s removed 5 of 10 tokens and later returned them twice.
func TestConvex_ClockStepsBack(t *testing.T) {
	play(t, tokenBucket(t, 10, "10/1m"),
		step{0, 1, true, 0},
		step{-30 * time.Second, 9, true, 0},
		step{30 * time.Second, 1, false, 6 * time.Second},
	)
}

// In Convex, maxReserved: 0 was unbounded. In mete, 0 allows no reservation and nil is unbounded.
func TestConvex_MaxReservedZero(t *testing.T) {
	c := newClock()
	none, spec := bucket.Tokens(0), tokenBucket(t, 10, "10/1m")
	for _, tt := range []struct {
		maxReserved *bucket.Tokens
		want        bool
	}{{&none, false}, {nil, true}} {
		spec.MaxReserved = tt.maxReserved
		r, err := newLimiter(t, spec, c).Reserve("k", 1000, 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if r.Allowed != tt.want {
			t.Errorf("reserve 1000 of 10, max reserved %v: allowed %v, want %v", tt.maxReserved, r.Allowed, tt.want)
		}
	}
}

// In Convex, a negative count credited 15 of 10 tokens.
func TestConvex_NegativeCost(t *testing.T) {
	play(t, tokenBucket(t, 10, "10/1m"),
		step{0, 10, true, 0}, step{0, -15, false, bucket.Never}, step{0, 1, false, 6 * time.Second})
}

// A fixed window admits twice its tokens around its end. A sliding log does not.
func TestConvex_AroundTheEndOfAWindow(t *testing.T) {
	window := tokenBucket(t, 100, "100/1m")
	window.Algorithm = bucket.AlgorithmStepped
	log := tokenBucket(t, 100, "100/1m")
	log.Algorithm = bucket.AlgorithmSlidingLog
	for _, tt := range []struct {
		spec bucket.Spec
		want int
	}{{window, 200}, {log, 100}} {
		c := newClock() // a minute begins
		l := newLimiter(t, tt.spec, c)
		admitted := 0
		for _, pass := range []time.Duration{59_950 * time.Millisecond, 100 * time.Millisecond} {
			c.now = c.now.Add(pass)
			for range 100 {
				if l.Allow("k") {
					admitted++
				}
			}
		}
		if admitted != tt.want {
			t.Errorf("%v: %d admitted within 100 ms, want %d", tt.spec.Algorithm, admitted, tt.want)
		}
	}
}

// In Convex, windows without a start began at random, so a restart moved them. In mete the key sets the start.
func TestConvex_KeySetsStart(t *testing.T) {
	spec := tokenBucket(t, 1, "1/1h")
	spec.Algorithm, spec.Anchor = bucket.AlgorithmStepped, bucket.AnchorKey
	var waits [2]time.Duration
	for i := range waits { // two processes, one after the other
		l := newLimiter(t, spec, newClock())
		l.Allow("k")
		waits[i] = l.Peek("k", 1).RetryAfter
	}
	if waits[0] != waits[1] {
		t.Errorf("the window ends in %v, and after a restart in %v", waits[0], waits[1])
	}
}

// If several limits deny, RetryAfter is the longest wait, not the first.
func TestConvex_LongestWait(t *testing.T) {
	l := newChargeLimiter(t, newClock())
	a, b := tokenBucket(t, 1, "1/1s"), tokenBucket(t, 1, "1/1h")
	take(t, l, charge(t, a, "a", 1), charge(t, b, "b", 1))
	if d := take(t, l, charge(t, a, "a", 1), charge(t, b, "b", 1)); d.Allowed || d.RetryAfter != time.Hour {
		t.Errorf("allowed %v, retry after %v; want the hour of the second limit", d.Allowed, d.RetryAfter)
	}
}

// In Convex, a start in the future denied unused keys.
func TestConvex_UnusedIsNeverDenied(t *testing.T) {
	spec := tokenBucket(t, 1, "1/1h")
	spec.Algorithm, spec.Start = bucket.AlgorithmStepped, 59*time.Minute
	play(t, spec, step{0, 1, true, 0})
}

// In Convex, ten shards of 10 tokens denied first after 64 of 100, or after 94 with two choices. One of two shards can
// never hold 60 of 100.
func TestConvex_Shards(t *testing.T) {
	l := newChargeLimiter(t, newClock())
	sharded := func(key string, shards int, cost bucket.Tokens) mete.Charge {
		c := charge(t, tokenBucket(t, 100, "100/1h"), key, cost)
		c.Shards = shards
		return c
	}
	admitted := 0
	for range 100 {
		if take(t, l, sharded("ten", 10, 1)).Allowed {
			admitted++
		}
	}
	if admitted != 100 {
		t.Errorf("%d of 100 admitted by ten shards", admitted)
	}
	if d := take(t, l, sharded("two", 2, 60)); !d.Allowed {
		t.Errorf("60 of 100 from two shards: denied, retry after %v", d.RetryAfter)
	}
}
