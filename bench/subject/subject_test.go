// SPDX-License-Identifier: Apache-2.0

package subject_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/metehq/mete/bench/subject"
)

// open returns a limiter of every subject in turn, as a subtest.
func open(t *testing.T, quota subject.Quota, test func(*testing.T, subject.Limiter)) {
	for _, s := range subject.All {
		t.Run(s.Name, func(t *testing.T) {
			limiter, err := s.New(quota)
			if err != nil {
				t.Fatalf("New(%+v): %v", quota, err)
			}
			defer limiter.Close()
			test(t, limiter)
		})
	}
}

func TestAllowAllows(t *testing.T) {
	open(t, subject.Allow, func(t *testing.T, limiter subject.Limiter) {
		for i := range 100_000 {
			if !limiter.Take("user:00000000001") {
				t.Fatalf("call %d was denied", i+1)
			}
		}
	})
}

func TestDenyDenies(t *testing.T) {
	open(t, subject.Deny, func(t *testing.T, limiter subject.Limiter) {
		if !limiter.Take("user:00000000001") {
			t.Fatal("the first call was denied")
		}
		for i := range 1000 {
			if limiter.Take("user:00000000001") {
				t.Fatalf("call %d was allowed", i+2)
			}
		}
	})
}

func TestKeysAreIndependent(t *testing.T) {
	open(t, subject.Deny, func(t *testing.T, limiter subject.Limiter) {
		for i := range 1000 {
			if key := "user:" + strconv.Itoa(i); !limiter.Take(key) || limiter.Take(key) {
				t.Fatalf("%q did not have one token of its own", key)
			}
		}
	})
}

// TestOneStepConcurrently proves that no subject is fast because it loses
// tokens: of many calls at once exactly one is admitted.
func TestOneStepConcurrently(t *testing.T) {
	open(t, subject.Deny, func(t *testing.T, limiter subject.Limiter) {
		for i := range 100 {
			key := "user:" + strconv.Itoa(i)
			var admitted atomic.Int64
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if subject.For(limiter).Take(key) {
						admitted.Add(1)
					}
				})
			}
			wg.Wait()
			if got := admitted.Load(); got != 1 {
				t.Fatalf("%q: %d calls were admitted, want 1", key, got)
			}
		}
	})
}
