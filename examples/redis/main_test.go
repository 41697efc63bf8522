// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/proctest"
)

// take returns how many of four requests are allowed, and how many without Redis.
func take(t *testing.T, limiter *mete.Limiter) (allowed, degraded int) {
	t.Helper()
	for range 4 {
		d, err := limiter.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"header:x-api-key": "k1"}})
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			allowed++
		}
		if d.Degraded {
			degraded++
		}
	}
	return allowed, degraded
}

func TestLimiters_ShareBuckets(t *testing.T) {
	t.Setenv("HASH_KEY", "of the example")
	r := proctest.StartRedis(t)
	for i, want := range []int{3, 0} {
		limiter, store, err := newLimiter(t.Context(), "redis://"+r.Addr)
		if err != nil {
			t.Fatal(err)
		}
		if got, degraded := take(t, limiter); got != want || degraded > 0 {
			t.Errorf("limiter %d: %d of 4 allowed, %d degraded, want %d and 0", i, got, degraded, want)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestLimiter_WithoutRedis(t *testing.T) {
	t.Setenv("HASH_KEY", "of the example")
	r := proctest.StartRedis(t)
	limiter, store, err := newLimiter(t.Context(), "redis://"+r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r.Kill()
	if allowed, degraded := take(t, limiter); allowed != 3 || degraded != 4 {
		t.Errorf("%d of 4 allowed, %d degraded, want 3 and 4", allowed, degraded)
	}
}
