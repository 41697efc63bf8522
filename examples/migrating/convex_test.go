// SPDX-License-Identifier: Apache-2.0

package migrating_test

import (
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// "value < consuming", after the subtraction, admitted 9 of 10, and 6 of 10
// never.
func TestConvex_AllOfTheCapacity(t *testing.T) {
	play(t, holds(t, 10, "10/1m"),
		step{0, 6, true, 0}, step{0, 4, true, 0}, step{0, 1, false, 6 * time.Second})
	play(t, holds(t, 10, "10/1m"), step{0, 10, true, 0})
}

// A clock that steps back by 30 s took 5 of 10 tokens away, and gave them twice
// later.
func TestConvex_ClockStepsBack(t *testing.T) {
	play(t, holds(t, 10, "10/1m"),
		step{0, 1, true, 0},
		step{-30 * time.Second, 9, true, 0},
		step{30 * time.Second, 1, false, 6 * time.Second},
	)
}

// maxReserved: 0 was no bound at all: here it is none to be reserved, and nil is
// no bound.
func TestConvex_MaxReservedZero(t *testing.T) {
	c := newClock()
	none, spec := bucket.Tokens(0), holds(t, 10, "10/1m")
	for _, tt := range []struct {
		maxReserved *bucket.Tokens
		want        bool
	}{{&none, false}, {nil, true}} {
		spec.MaxReserved = tt.maxReserved
		r, err := limited(t, spec, c).Reserve("k", 1000, 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if r.Allowed != tt.want {
			t.Errorf("reserve 1000 of 10, max reserved %v: allowed %v, want %v", tt.maxReserved, r.Allowed, tt.want)
		}
	}
}

// A negative count credited 15 of 10.
func TestConvex_NegativeCost(t *testing.T) {
	play(t, holds(t, 10, "10/1m"),
		step{0, 10, true, 0}, step{0, -15, false, bucket.Never}, step{0, 1, false, 6 * time.Second})
}

// A fixed window does admit twice its tokens around its end. What does not is a
// sliding log.
func TestConvex_AroundTheEndOfAWindow(t *testing.T) {
	window := holds(t, 100, "100/1m")
	window.Algorithm = bucket.Stepped
	log := holds(t, 100, "100/1m")
	log.Algorithm = bucket.SlidingLog
	for _, tt := range []struct {
		spec bucket.Spec
		want int
	}{{window, 200}, {log, 100}} {
		c := newClock() // a minute begins
		l := limited(t, tt.spec, c)
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

// Without a start, windows began at random: a restart moved them. Here they
// begin where the key says.
func TestConvex_StartIsOfTheKey(t *testing.T) {
	spec := holds(t, 1, "1/1h")
	spec.Algorithm, spec.Anchor = bucket.Stepped, bucket.AnchorKey
	var waits [2]time.Duration
	for i := range waits { // two processes, one after the other
		l := limited(t, spec, newClock())
		l.Allow("k")
		waits[i] = l.Peek("k", 1).RetryAfter
	}
	if waits[0] != waits[1] {
		t.Errorf("the window ends in %v, and after a restart in %v", waits[0], waits[1])
	}
}

// Of several limits that deny, the longest wait is told, and not the first.
func TestConvex_LongestWait(t *testing.T) {
	l := several(t, newClock())
	a, b := holds(t, 1, "1/1s"), holds(t, 1, "1/1h")
	take(t, l, charge(t, a, "a", 1), charge(t, b, "b", 1))
	if d := take(t, l, charge(t, a, "a", 1), charge(t, b, "b", 1)); d.Allowed || d.RetryAfter != time.Hour {
		t.Errorf("allowed %v, retry after %v; want the hour of the second limit", d.Allowed, d.RetryAfter)
	}
}

// A start in the future denied what had never been used.
func TestConvex_UnusedIsNeverDenied(t *testing.T) {
	spec := holds(t, 1, "1/1h")
	spec.Algorithm, spec.Start = bucket.Stepped, 59*time.Minute
	play(t, spec, step{0, 1, true, 0})
}

// Ten shards of 10 tokens refused the first after 64 of 100, or after 94 with two
// choices; and one of two shards can never hold 60 of 100.
func TestConvex_Shards(t *testing.T) {
	l := several(t, newClock())
	sharded := func(key string, shards int, cost bucket.Tokens) mete.Charge {
		c := charge(t, holds(t, 100, "100/1h"), key, cost)
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
