// SPDX-License-Identifier: Apache-2.0

package inredis_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/inredis"
	"github.com/metehq/mete/internal/proctest"
)

// open returns a limiter of every subject in turn, as a subtest, with an empty
// server. Floors are left out: they decide nothing.
func open(t *testing.T, quota subject.Quota, test func(*testing.T, inredis.Limiter)) {
	server := proctest.StartRedis(t)
	for _, s := range inredis.All {
		if s.Kind == inredis.Floor {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if _, err := server.Do("FLUSHALL"); err != nil {
				t.Fatal(err)
			}
			limiter, err := s.New(server.Addr, quota)
			if err != nil {
				t.Fatalf("New(%+v): %v", quota, err)
			}
			defer limiter.Close()
			test(t, limiter)
		})
	}
}

// ask fails the test unless the answer is as wanted.
func ask(t *testing.T, take inredis.Take, want bool, keys ...string) {
	t.Helper()
	if allowed, err := take(keys); err != nil || allowed != want {
		t.Fatalf("take %q: allowed = %v, %v, want %v", keys, allowed, err, want)
	}
}

func TestAllowAllows(t *testing.T) {
	open(t, subject.Allow, func(t *testing.T, limiter inredis.Limiter) {
		take := limiter.Caller()
		for range 300 {
			ask(t, take, true, "user:00000000001")
		}
	})
}

func TestDenyDenies(t *testing.T) {
	open(t, subject.Deny, func(t *testing.T, limiter inredis.Limiter) {
		take := limiter.Caller()
		ask(t, take, true, "user:00000000001")
		for range 100 {
			ask(t, take, false, "user:00000000001")
		}
		ask(t, take, true, "user:00000000002")
	})
}

// TestOneOfSeveralKeysDenies takes from three buckets of which one is empty.
func TestOneOfSeveralKeysDenies(t *testing.T) {
	open(t, subject.Deny, func(t *testing.T, limiter inredis.Limiter) {
		take := limiter.Caller()
		ask(t, take, true, "a", "b", "c")
		ask(t, take, false, "c", "d", "e")
		ask(t, take, false, "a")
		ask(t, take, false, "b")
	})
}

// TestOneStepConcurrently proves that no subject is fast because it loses
// tokens: of many takes at once exactly one is admitted.
func TestOneStepConcurrently(t *testing.T) {
	open(t, subject.Deny, func(t *testing.T, limiter inredis.Limiter) {
		takes := make([]inredis.Take, 8)
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
	})
}

// TestErrorsAreNotAnswers asks a server that is gone: a limiter that hid that
// would be measured as a fast one.
func TestErrorsAreNotAnswers(t *testing.T) {
	for _, s := range inredis.All {
		if s.Kind == inredis.Leased { // lives on what it has taken
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel() // go-redis takes seconds to give up
			server := proctest.StartRedis(t)
			limiter, err := s.New(server.Addr, subject.Allow)
			if err != nil {
				t.Fatalf("New: %v", err)
			}
			defer limiter.Close()
			take := limiter.Caller()
			ask(t, take, true, "user:00000000001")
			server.Kill()
			if allowed, err := take([]string{"user:00000000001"}); err == nil {
				t.Errorf("allowed = %v without a server, want an error", allowed)
			}
		})
	}
}
