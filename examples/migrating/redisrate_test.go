// SPDX-License-Identifier: Apache-2.0

package migrating_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// In redis_rate, AllowN(11) of 10 per minute returned a retry in 60 s, each time.
func TestRedisRate_CostAboveCapacity(t *testing.T) {
	play(t, tokenBucket(t, 10, "10/1m"),
		step{0, 11, false, bucket.Never},
		step{time.Minute, 11, false, bucket.Never},
	)
}

// In redis_rate, AllowN(-5) returned "allowed -5, remaining 15" of 10 and stored nothing.
func TestRedisRate_NegativeCost(t *testing.T) {
	c := newClock()
	l := newLimiter(t, tokenBucket(t, 10, "10/1m"), c)
	if got := l.Take("k", -5); got.Allowed || got.Remaining() != 10*bucket.Token {
		t.Errorf("cost -5: allowed %v, %v remaining; want denied, 10", got.Allowed, got.Remaining())
	}
	l.Take("k", 8)
	if l.Refund("k", 5); l.Peek("k", 0).Remaining() != 7*bucket.Token {
		t.Errorf("%v remaining after 8 of 10 were taken and 5 given back; want 7", l.Peek("k", 0).Remaining())
	}
}

// AllowAtMost corresponds to TakeUpTo, which takes whole tokens.
func TestRedisRate_AllowAtMost(t *testing.T) {
	c := newClock()
	l := newLimiter(t, tokenBucket(t, 10, "10/1m"), c)
	l.Take("k", 8)
	c.now = c.now.Add(3 * time.Second) // half a token
	if got := l.TakeUpTo("k", 5); !got.Allowed || got.Cost != 2*bucket.Token {
		t.Errorf("up to 5 of 2.5: allowed %v, took %v; want 2", got.Allowed, got.Cost)
	}
	if got := l.TakeUpTo("k", 5); got.Allowed || got.RetryAfter != 3*time.Second {
		t.Errorf("up to 5 of 0.5: allowed %v, retry after %v; want denied, 3s", got.Allowed, got.RetryAfter)
	}
}
