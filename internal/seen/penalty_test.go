// SPDX-License-Identifier: Apache-2.0

package seen_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/seen"
	"github.com/metehq/mete/store"
)

// The memory answers for the store during a penalty. It never keeps a denial from the store that starts a penalty.
func TestTake_Penalty(t *testing.T) {
	p, err := bucket.NewPenalty(time.Minute, time.Minute, bucket.Token)
	if err != nil {
		t.Fatal(err)
	}
	s, l := begin(t, seen.Config{DenyFor: time.Hour}), slow(t) // a token takes 10 s
	punished := func(cost bucket.Tokens) store.Charge {
		c := charge("k", l, cost)
		c.Penalty = p
		return c
	}
	s.take(store.Mode{}, 1, charge("k", l, 10))
	s.take(store.Mode{}, 2, charge("k", l, 1)) // no penalty starts
	first, _ := s.take(store.Mode{}, 3, punished(1))
	if left, _ := first[0].Penalty(); left != time.Minute {
		t.Fatalf("a penalty of %v after a denial, want one minute", left)
	}
	for range 50 {
		s.clock.Advance(1_000_000)
		if _, allowed := s.take(store.Mode{}, 3, punished(1)); allowed {
			t.Fatal("admitted during a penalty")
		}
	}
	snaps, _ := s.take(store.Mode{}, 3, punished(1))
	if left, level := snaps[0].Penalty(); left != 10*time.Second || level != 1 || snaps[0].RetryAfter != left {
		t.Errorf("%v left of level %d, wait %v; want 10 s of level 1", left, level, snaps[0].RetryAfter)
	}
	s.clock.Advance(9_999_000)
	s.take(store.Mode{}, 3, punished(7))
	// The penalty has ended, and the bucket holds 6 tokens. The store has to learn of the denial.
	s.clock.Advance(1_000)
	snaps, allowed := s.take(store.Mode{}, 4, punished(7))
	if left, _ := snaps[0].Penalty(); allowed || left != time.Minute {
		t.Errorf("allowed %v, a penalty of %v; want a new one", allowed, left)
	}
	// A charge without a penalty does not obey it.
	if _, allowed := s.take(store.Mode{}, 5, charge("k", l, 6)); !allowed {
		t.Error("a charge without a penalty was denied")
	}
}
