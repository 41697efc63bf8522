// SPDX-License-Identifier: Apache-2.0

package migrating_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// fivePerTen corresponds to tokenBucket(5, "10s", 20). Its intervals begin with the first take.
func fivePerTen(t *testing.T) bucket.Spec {
	spec := tokenBucket(t, 20, "5/10s")
	spec.Algorithm, spec.Anchor = bucket.AlgorithmStepped, bucket.AnchorFirst
	return spec
}

// One request every 3 s is less than 5 every 10 s. In pg-ratelimit, every take lost the fraction of an interval, so 37%
// were denied.
func TestPgRatelimit_FractionsOfAnInterval(t *testing.T) {
	for _, every := range []time.Duration{3 * time.Second, 9 * time.Second} {
		var steps []step
		for range 1000 {
			steps = append(steps, step{every, 1, true, 0})
		}
		play(t, fivePerTen(t), steps...)
	}
}

// pg-ratelimit ignored the elapsed time in the wait after a denial: 10 s instead of 0.1 s.
func TestPgRatelimit_WaitCountsWhatHasElapsed(t *testing.T) {
	play(t, fivePerTen(t),
		step{0, 20, true, 0},
		step{9900 * time.Millisecond, 1, false, 100 * time.Millisecond},
		step{100 * time.Millisecond, 1, true, 0}, // exactly then, and not a moment later
	)
}

// In pg-ratelimit, a denied cost of 20 blocked a cost of 1 with 10 tokens left.
func TestPgRatelimit_DenialBlocksNothingElse(t *testing.T) {
	play(t, fivePerTen(t),
		step{0, 10, true, 0},
		step{0, 20, false, 20 * time.Second},
		step{0, 1, true, 0},
	)
}

// Fixed windows of pg-ratelimit counted denied requests, so a refund did not help after 1000 denials.
func TestPgRatelimit_DenialIsFree(t *testing.T) {
	spec := tokenBucket(t, 5, "5/1m")
	spec.Algorithm, spec.Anchor = bucket.AlgorithmStepped, bucket.AnchorFirst
	l := newLimiter(t, spec, newClock())
	l.Take("k", 5)
	for range 1000 {
		l.Allow("k")
	}
	if l.Refund("k", 1); !l.Allow("k") {
		t.Error("a token that was given back cannot be taken")
	}
}

// In pg-ratelimit, a refund of 10 to 19 tokens gave 29 until the next call, and lost the current interval.
func TestPgRatelimit_Refund(t *testing.T) {
	c := newClock()
	l := newLimiter(t, fivePerTen(t), c)
	l.Take("k", 20)
	c.now = c.now.Add(9900 * time.Millisecond)
	l.Refund("k", 1)
	if got := l.Peek("k", 6).RetryAfter; got != 100*time.Millisecond {
		t.Errorf("6, with 1 there and 5 due: retry after %v, want 100ms", got)
	}
	if l.Refund("k", 100); l.Peek("k", 0).Remaining() != 20*bucket.Token {
		t.Errorf("%v remaining, want 20", l.Peek("k", 0).Remaining())
	}
}

// In pg-ratelimit, a call of cost 0 with a timestamp 50 s ago filled an empty bucket.
func TestPgRatelimit_ClockStepsBack(t *testing.T) {
	play(t, fivePerTen(t),
		step{0, 20, true, 0},
		step{-50 * time.Second, 0, true, 0},
		step{50 * time.Second, 1, false, 10 * time.Second},
	)
}

// After ten requests at 0 s, the reset of pg-ratelimit was 60 s at 59 s and 120 s at 60 s. The first success was at
// 66 s.
func TestPgRatelimit_SlidingWindowWait(t *testing.T) {
	spec := tokenBucket(t, 10, "10/1m")
	spec.Algorithm = bucket.AlgorithmSlidingWindow
	c := newClock() // a window begins
	l := newLimiter(t, spec, c)
	l.Take("k", 10)
	c.now = c.now.Add(59 * time.Second)
	wait := l.Take("k", 1).RetryAfter
	if c.now = c.now.Add(wait - time.Microsecond); l.Allow("k") {
		t.Errorf("admitted a microsecond before %v", wait)
	}
	if c.now = c.now.Add(time.Microsecond); !l.Allow("k") {
		t.Errorf("denied after exactly %v", wait)
	}
}

// Two counters admit up to 18 of 10 within a minute. A sliding log is exact.
func TestPgRatelimit_SlidingLogIsExact(t *testing.T) {
	spec := tokenBucket(t, 10, "10/1m")
	spec.Algorithm = bucket.AlgorithmSlidingLog
	c := newClock()
	l := newLimiter(t, spec, c)
	var admitted []bucket.Instant
	for range 600 {
		c.now = c.now.Add(500 * time.Millisecond)
		if l.Allow("k") {
			admitted = append(admitted, c.now)
		}
	}
	for i := 10; i < len(admitted); i++ {
		if admitted[i] < admitted[i-10].Add(time.Minute) {
			t.Errorf("11 admitted between %v and %v", admitted[i-10].Time(), admitted[i].Time())
		}
	}
	if len(admitted) != 50 {
		t.Errorf("%d admitted in five minutes, want 50", len(admitted))
	}
}

func TestPgRatelimit_CostAboveCapacity(t *testing.T) {
	play(t, fivePerTen(t), step{0, 21, false, bucket.Never})
}
