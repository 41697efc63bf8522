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

// A clock is a virtual time, which moves when it is told to.
type clock struct{ now bucket.Instant }

func newClock() *clock { return &clock{bucket.At(time.Unix(1_800_000_000, 0))} }

// A step is a take, some time after the step before, and what is wanted of it.
type step struct {
	after      time.Duration
	cost       int
	allowed    bool
	retryAfter time.Duration // where denied
}

// holds is a bucket of so many tokens, refilled at a rate such as "10/1m".
func holds(t *testing.T, capacity bucket.Tokens, rate string) bucket.Spec {
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

// limited is a limiter whose buckets are as spec says.
func limited(t *testing.T, spec bucket.Spec, c *clock) *keyed.Limiter {
	t.Helper()
	l, err := keyed.New(compile(t, spec), keyed.Config{Now: func() bucket.Instant { return c.now }})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// play takes the steps, all for one key.
func play(t *testing.T, spec bucket.Spec, steps ...step) {
	t.Helper()
	c := newClock()
	l := limited(t, spec, c)
	for i, s := range steps {
		c.now = c.now.Add(s.after)
		got := l.Take("k", s.cost)
		if got.Allowed != s.allowed || got.RetryAfter != s.retryAfter {
			t.Errorf("step %d, cost %d: allowed %v, retry after %v; want %v, %v",
				i, s.cost, got.Allowed, got.RetryAfter, s.allowed, s.retryAfter)
		}
	}
}

// several is a limiter for requests that bring their limits themselves.
func several(t *testing.T, c *clock) *mete.Limiter {
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
