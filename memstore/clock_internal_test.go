// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// A stallingClock lets another goroutine take after the clock was read, in one call, so that a test need not
// wait for a race.
type stallingClock struct {
	now   bucket.Instant
	stall func() // called once, after the clock was read
}

func (c *stallingClock) read() bucket.Instant {
	now := c.now
	if stall := c.stall; stall != nil {
		c.stall = nil
		stall()
	}
	return now
}

// A take that stalls after reading the clock is not denied available tokens: another take found a refill by a
// later clock and left enough. Takes under locks and of several buckets read the clock while they hold them.
func TestTake_DeniesNothingByAnEarlierClock(t *testing.T) {
	rate := bucket.Rate{Tokens: 10 * bucket.Token, Per: 10 * time.Second}
	for name, spec := range map[string]bucket.Spec{
		"token bucket":   {Capacity: 10 * bucket.Token, Rate: rate},
		"sliding window": {Algorithm: bucket.AlgorithmSlidingWindow, Rate: rate},
		"stepped bucket": {Algorithm: bucket.AlgorithmStepped, Capacity: 10 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Second}},
	} {
		clock := &stallingClock{now: 1_700_000_000_000_000}
		s := newStore(t, Config{Now: clock.read})
		s.steady = true // as the process's clock
		l, _, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		for s.take1(t, "k", l, bucket.Token).Allowed {
		}
		clock.now += 9_000_000
		for s.take1(t, "k", l, bucket.Token).Allowed {
		}
		clock.stall = func() {
			clock.now += 6_000_000
			if !s.take1(t, "k", l, bucket.Token).Allowed {
				t.Errorf("%s: nothing has come back after 6 s", name)
			}
		}
		snap := s.take1(t, "k", l, bucket.Token)
		if clock.stall != nil {
			t.Fatalf("%s: the clock was not read", name)
		}
		if !snap.Allowed {
			t.Errorf("%s: denied, retry after %v", name, snap.RetryAfter)
		}
		if _, at := snap.Verdict(); at != clock.now {
			t.Errorf("%s: decided at %d, want %d", name, at, clock.now)
		}
	}
}
