// SPDX-License-Identifier: Apache-2.0

// Package remotetest tests that limiters on a server limit: none may be fast because it is wrong.
package remotetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
)

// Test tests the limiters of open, which uses a server without buckets each time. The test closes them.
func Test(t *testing.T, open func(*testing.T, subject.Quota) remote.Limiter) {
	for _, c := range []struct {
		name  string
		quota subject.Quota
		test  func(*testing.T, remote.Limiter)
	}{
		{"allow allows", subject.Allow, allows},
		{"deny denies", subject.Deny, denies},
		{"one of several keys denies", subject.Deny, severalKeys},
		{"one step concurrently", subject.Deny, oneStep},
	} {
		t.Run(c.name, func(t *testing.T) {
			limiter := open(t, c.quota)
			defer limiter.Close()
			c.test(t, limiter)
		})
	}
}

// Ask fails the test unless the answer is the wanted one.
func Ask(t *testing.T, take remote.Take, want bool, keys ...string) {
	t.Helper()
	if allowed, err := take(keys); err != nil || allowed != want {
		t.Fatalf("take %q: allowed = %v, %v, want %v", keys, allowed, err, want)
	}
}

func allows(t *testing.T, limiter remote.Limiter) {
	take := limiter.Caller()
	for range 300 {
		Ask(t, take, true, "user:00000000001")
	}
}

func denies(t *testing.T, limiter remote.Limiter) {
	take := limiter.Caller()
	Ask(t, take, true, "user:00000000001")
	for range 100 {
		Ask(t, take, false, "user:00000000001")
	}
	Ask(t, take, true, "user:00000000002")
}

func severalKeys(t *testing.T, limiter remote.Limiter) {
	take := limiter.Caller()
	Ask(t, take, true, "a", "b", "c")
	Ask(t, take, false, "c", "d", "e")
	Ask(t, take, false, "a")
	Ask(t, take, false, "b")
}

// oneStep proves that takes are atomic: of many concurrent takes, exactly one is admitted.
func oneStep(t *testing.T, limiter remote.Limiter) {
	takes := make([]remote.Take, 8)
	for i := range takes {
		takes[i] = limiter.Caller()
	}
	for i := range 20 {
		keys := []string{fmt.Sprintf("user:%011d", i)}
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for _, take := range takes {
			wg.Go(func() {
				allowed, err := take(keys)
				if err != nil {
					t.Errorf("take %q: %v", keys, err)
				}
				if allowed {
					admitted.Add(1)
				}
			})
		}
		wg.Wait()
		if got := admitted.Load(); got != 1 {
			t.Fatalf("%q: %d takes were admitted, want 1", keys, got)
		}
	}
}
