// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/proctest"
)

// take returns the number of admitted takes among four requests with a key, and of takes without Redis.
func take(t *testing.T, limiter *mete.Limiter, key string) (allowed, degraded int) {
	t.Helper()
	for range 4 {
		d, err := limiter.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"header:x-api-key": key}})
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
	r := proctest.StartRedis(t)
	for try := range 20 { // on a slow machine, Redis may be late
		if share(t, "redis://"+r.Addr, fmt.Sprint("k", try)) {
			return
		}
	}
	t.Error("Redis is always late")
}

// share takes from a key with two limiters in turn, and reports whether Redis answered all takes.
func share(t *testing.T, url, key string) bool {
	for i, want := range []int{3, 0} {
		limiter, err := newLimiter(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		got, degraded := take(t, limiter, key)
		if err := limiter.Close(); err != nil {
			t.Error(err)
		}
		if degraded > 0 {
			return false
		}
		if got != want {
			t.Errorf("limiter %d: %d of 4 allowed, want %d", i, got, want)
		}
	}
	return true
}

func TestLimiter_WithoutRedis(t *testing.T) {
	r := proctest.StartRedis(t)
	limiter, err := newLimiter(t.Context(), "redis://"+r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	r.Kill()
	if allowed, degraded := take(t, limiter, "k"); allowed != 3 || degraded != 4 {
		t.Errorf("%d of 4 allowed, %d degraded, want 3 and 4", allowed, degraded)
	}
}
