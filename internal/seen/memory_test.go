// SPDX-License-Identifier: Apache-2.0

package seen_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/seen"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// missing returns the deficit of a bucket in the memory, or -1 for an unknown bucket.
func (s *setup) missing(key string, l bucket.Limit) bucket.Tokens {
	for _, account := range s.memory.Recall(key) {
		if account.Limit == l {
			return l.Peek(account.State, s.clock.Now(), 0, 0).Missing()
		}
	}
	return -1
}

// A dry run opens no account for a new version of the limit. The store continues from the old version's
// account, which may refill faster.
func TestTake_AfterADryRunOfAnotherVersion(t *testing.T) {
	fast := compile(t, bucket.Spec{Capacity: 10 * bucket.Token, Rate: bucket.PerSecond(bucket.Token)})
	for _, local := range []bool{false, true} {
		s := begin(t, seen.Config{DenyFor: time.Hour, Local: local})
		s.take(store.Mode{}, 1, charge("k", fast, 10))
		s.take(store.Mode{}, 2, charge("k", fast, 5))
		s.take(store.Mode{DryRun: true}, 3, charge("k", slow(t), 5))
		s.clock.Advance(4e6)
		s.take(store.Mode{DryRun: true}, 4, charge("k", slow(t), 5))
		s.clock.Advance(1e6)
		if snaps, allowed := s.take(store.Mode{}, 5, charge("k", slow(t), 5)); !allowed {
			t.Errorf("local %v: denied by what a dry run showed: %+v", local, snaps)
		}
	}
}

// No answer covers the whole bucket of a sharded charge.
func TestTake_ShardsAreNotDenied(t *testing.T) {
	s, c := begin(t, seen.Config{Local: true}), charge("k", slow(t), 10)
	for _, shards := range []int{0, 4} {
		c.Shards = shards
		s.take(store.Mode{Fresh: true}, s.inner.takes.Load()+1, c)
	}
	s.take(store.Mode{}, 3, c)
	c.Shards = 0 // by a later policy
	s.take(store.Mode{}, 4, c)
	s.take(store.Mode{}, 4, c)
	c.Shards = 4
	s.take(store.Mode{}, 5, c)
}

// A later answer with a smaller deficit means that tokens were refunded elsewhere.
func TestMemory_TokensGivenBackElsewhere(t *testing.T) {
	s, c := begin(t, seen.Config{Local: true}), charge("k", slow(t), 10)
	s.take(store.Mode{}, 1, c)
	if err := s.inner.Refund(t.Context(), storetest.Refunds(charge("k", slow(t), 4)), ""); err != nil {
		t.Fatal(err)
	}
	s.take(store.Mode{}, 2, c)
	if got := s.missing("k", c.Limit); got != 6*bucket.Token {
		t.Errorf("%v are known to be missing, want 6", got)
	}
}

func TestMemory_OneSightingForBoth(t *testing.T) {
	s, c := begin(t, seen.Config{Local: true}), charge("k", slow(t), 10)
	s.take(store.Mode{}, 1, c)
	s.take(store.Mode{}, 2, c)
	s.take(store.Mode{}, 2, c)
	if got := s.missing("k", c.Limit); got != 10*bucket.Token {
		t.Errorf("after a denial: %v are known to be missing, want 10", got)
	}
	if err := s.store.Refund(t.Context(), storetest.Refunds(charge("k", c.Limit, 5)), ""); err != nil {
		t.Fatal(err)
	}
	if got := s.missing("k", c.Limit); got != 10*bucket.Token {
		t.Errorf("after a refund: %v are known to be missing, want 10, which is not too little", got)
	}
	s.take(store.Mode{}, 3, c)
	if got := s.missing("k", c.Limit); got != 5*bucket.Token {
		t.Errorf("after a denial: %v are known to be missing, want 5", got)
	}
	if err := s.store.Reset(t.Context(), []string{"k"}); err != nil {
		t.Fatal(err)
	}
	if got := s.missing("k", c.Limit); got != -1 || s.memory.Stats().Denying != 0 {
		t.Errorf("after a reset: %v are known to be missing, %+v; want nothing", got, s.memory.Stats())
	}
}

// A denied reservation changes nothing and keeps a denial. Costs of other processes count.
func TestMemory_DeniedReservation(t *testing.T) {
	s, c := begin(t, seen.Config{Local: true}), charge("k", slow(t), 4)
	s.take(store.Mode{}, 1, charge("k", slow(t), 8))
	s.take(store.Mode{}, 2, c)
	wait := store.Mode{MaxWait: time.Second}
	s.take(wait, 3, c)
	s.take(store.Mode{}, 3, c)
	if _, allowed, err := s.inner.Store.Take(t.Context(), nil, []store.Charge{charge("k", slow(t), 2)}, store.Mode{}); !allowed || err != nil {
		t.Fatalf("another process: allowed %v, %v", allowed, err)
	}
	s.take(wait, 4, c)
	if got := s.missing("k", c.Limit); got != 10*bucket.Token {
		t.Errorf("%v are known to be missing, want 10", got)
	}
	s.take(store.Mode{}, 5, c)
}

// Of two concurrent answers, the one with the larger deficit is the later one.
func TestMemory_OvertakenAnswer(t *testing.T) {
	for _, first := range []bucket.Tokens{3, 8} { // the second shows 3 or 8
		s := begin(t, seen.Config{Local: true})
		c := charge("k", slow(t), first)
		s.inner.after = func() {
			s.inner.after = nil
			s.take(store.Mode{}, 2, charge("k", slow(t), 1))
		}
		s.take(store.Mode{}, 2, c)
		if got, want := s.missing("k", c.Limit), (first+1)*bucket.Token; got != want {
			t.Errorf("%v are known to be missing, want %v", got, want)
		}
	}
}

// The answer to a repeated take with an ID can be an old one. It must not hide later costs from local buckets.
func TestMemory_RepeatedAnswer(t *testing.T) {
	s, c := begin(t, seen.Config{Local: true}), charge("k", slow(t), 1)
	s.take(store.Mode{ID: "id"}, 1, c)
	s.take(store.Mode{}, 2, charge("k", slow(t), 6))
	s.take(store.Mode{ID: "id"}, 3, c)
	if got := s.missing("k", c.Limit); got != 7*bucket.Token {
		t.Errorf("%v are known to be missing, want 7", got)
	}
	s.take(store.Mode{ID: "other"}, 4, c)
	if got := s.missing("k", c.Limit); got != 8*bucket.Token {
		t.Errorf("after a new take: %v are known to be missing, want 8", got)
	}
}

// With local buckets, takes of other rules are denied from the same memory.
func TestMemory_DenialsOfOtherRules(t *testing.T) {
	s := begin(t, seen.Config{Local: true, DenyFor: 3 * time.Second})
	s.store.local = false
	never := charge("k", slow(t), 11)
	s.take(store.Mode{}, 1, never)
	s.take(store.Mode{}, 1, never)
	s.clock.Advance(3e6)
	s.take(store.Mode{}, 2, charge("other", slow(t), 1))
	s.take(store.Mode{}, 3, never)
	if got := s.memory.Stats(); got != (seen.Stats{Denied: 1, Denying: 1}) {
		t.Errorf("%+v, want 1 take denied, and 1 bucket remembered", got)
	}
}
