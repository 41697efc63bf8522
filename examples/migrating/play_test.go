// SPDX-License-Identifier: Apache-2.0

package migrating_test

import (
	"context"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/keyed"
	"github.com/metehq/mete/memstore"
)

// A clock is a virtual time that tests move.
type clock struct{ now bucket.Instant }

func newClock() *clock { return &clock{bucket.At(time.Unix(1_800_000_000, 0))} }

// A step is a take at a time after the previous step, with its expected result.
type step struct {
	after      time.Duration
	cost       int
	allowed    bool
	retryAfter time.Duration // where denied
}

// tokenBucket returns a token bucket with a capacity and a rate such as "10/1m".
func tokenBucket(t *testing.T, capacity bucket.Tokens, rate string) bucket.Spec {
	t.Helper()
	r, err := bucket.ParseRate(rate)
	if err != nil {
		t.Fatal(err)
	}
	return bucket.Spec{Capacity: capacity * bucket.Token, Rate: r}
}

func compile(t *testing.T, spec bucket.Spec) bucket.Limit {
	t.Helper()
	limit, _, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return limit
}

// newLimiter returns a limiter for spec.
func newLimiter(t *testing.T, spec bucket.Spec, c *clock) *keyed.Limiter {
	t.Helper()
	l, err := keyed.New(compile(t, spec), keyed.Config{Now: func() bucket.Instant { return c.now }})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// play takes the steps with one key.
func play(t *testing.T, spec bucket.Spec, steps ...step) {
	t.Helper()
	c := newClock()
	l := newLimiter(t, spec, c)
	for i, s := range steps {
		c.now = c.now.Add(s.after)
		got := l.Take("k", s.cost)
		if got.Allowed != s.allowed || got.RetryAfter != s.retryAfter {
			t.Errorf("step %d, cost %d: allowed %v, retry after %v; want %v, %v",
				i, s.cost, got.Allowed, got.RetryAfter, s.allowed, s.retryAfter)
		}
	}
}

// newChargeLimiter returns a limiter for requests with Charges.
func newChargeLimiter(t *testing.T, c *clock) *mete.Limiter {
	t.Helper()
	store, err := memstore.New(memstore.Config{Now: func() bucket.Instant { return c.now }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func charge(t *testing.T, spec bucket.Spec, key string, cost bucket.Tokens) mete.Charge {
	t.Helper()
	return mete.Charge{Key: key, Limit: compile(t, spec), Cost: mete.TokensOf(cost * bucket.Token)}
}

func take(t *testing.T, l *mete.Limiter, charges ...mete.Charge) mete.Decision {
	t.Helper()
	d, err := l.Take(context.Background(), mete.Request{Charges: charges})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
