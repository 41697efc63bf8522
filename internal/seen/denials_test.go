// SPDX-License-Identifier: Apache-2.0

package seen_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/seen"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func TestTake_HammeringAsksOnce(t *testing.T) {
	s, l := begin(t, seen.Config{DenyFor: time.Hour}), slow(t)
	s.take(store.Mode{}, 1, charge("k", l, 10))
	first, _ := s.take(store.Mode{}, 2, charge("k", l, 2))
	for step := range int64(20_000) { // 20 s pass
		snaps, allowed := s.take(store.Mode{DryRun: step%2 == 0, Within: time.Second}, 2, charge("k", l, 2))
		if want := first[0].After(time.Duration(step) * time.Millisecond); allowed || snaps[0] != want {
			t.Fatalf("after %d ms: allowed %v, %+v; want %+v", step, allowed, snaps, want)
		}
		s.clock.Advance(1000)
	}
	if _, allowed := s.take(store.Mode{}, 3, charge("k", l, 2)); !allowed {
		t.Error("denied at the promised instant")
	}
	if got := s.memory.Stats(); got.Denied != 20_000 {
		t.Errorf("%+v, want 20000 denied", got)
	}
}

// A known bucket is known for every cost.
func TestTake_OtherCosts(t *testing.T) {
	s, l := begin(t, seen.Config{DenyFor: time.Hour}), slow(t)
	s.take(store.Mode{}, 1, charge("k", l, 8))
	s.take(store.Mode{}, 2, charge("k", l, 5))
	for _, tt := range []struct {
		cost  bucket.Tokens
		after time.Duration
	}{{3, 10 * time.Second}, {10, 80 * time.Second}, {11, bucket.Never}} {
		snaps, allowed := s.take(store.Mode{}, 2, charge("k", l, tt.cost))
		if allowed || snaps[0].RetryAfter != tt.after || snaps[0].Cost != tt.cost*bucket.Token || snaps[0].Remaining() != 2*bucket.Token {
			t.Errorf("a cost of %d: allowed %v, %+v; want denied for %v", tt.cost, allowed, snaps, tt.after)
		}
	}
	if _, allowed := s.take(store.Mode{}, 3, charge("k", l, 2)); !allowed {
		t.Error("what was there was denied")
	}
	if snaps, allowed := s.take(store.Mode{}, 3, charge("k", l, 1)); allowed || snaps[0].Remaining() != 0 {
		t.Errorf("after a take: allowed %v, %+v; want nothing left", allowed, snaps)
	}
}

// One bucket denies, and the other is shown as last seen.
func TestTake_SeveralBuckets(t *testing.T) {
	s, l := begin(t, seen.Config{}), slow(t)
	both := []store.Charge{charge("everyone", l, 1), charge("user", l, 10)}
	s.take(store.Mode{}, 1, both...)
	s.take(store.Mode{}, 2, both...)
	s.take(store.Mode{}, 3, charge("everyone", l, 3), charge("other", l, 1))
	snaps, allowed := s.take(store.Mode{}, 3, both...)
	if allowed || !snaps[0].Allowed || snaps[0].Remaining() != 6*bucket.Token || snaps[1].Allowed {
		t.Errorf("allowed %v, %+v; want the user denied, and 6 left for everyone", allowed, snaps)
	}
	s.take(store.Mode{}, 3, charge("user", l, 1))
	s.take(store.Mode{}, 4, charge("user", l, 1), charge("with", l, 1))
	s.take(store.Mode{}, 5, charge("everyone", l, 1))
}

// A take without a certain denial goes to the store.
func TestTake_AsksTheStore(t *testing.T) {
	l := slow(t)
	wider := compile(t, bucket.Spec{Capacity: 20 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: 10 * time.Second}})
	leased := charge("k", l, 3)
	leased.Leased = true
	for name, tt := range map[string]struct {
		mode   store.Mode
		charge store.Charge
		asked  int64
	}{
		"the same":          {store.Mode{}, charge("k", l, 2), 2},
		"another limit":     {store.Mode{}, charge("k", wider, 2), 3},
		"another key":       {store.Mode{}, charge("K", l, 2), 3},
		"a reservation":     {store.Mode{MaxWait: time.Minute}, charge("k", l, 2), 3},
		"a forced charge":   {store.Mode{MaxWait: bucket.Forced}, charge("k", l, 2), 3},
		"a part":            {store.Mode{UpTo: true}, charge("k", l, 2), 3},
		"an ID":             {store.Mode{ID: "x"}, charge("k", l, 2), 3},
		"the ID of a peek":  {store.Mode{ID: "x", DryRun: true}, charge("k", l, 2), 2},
		"a fresh look":      {store.Mode{DryRun: true, Fresh: true}, charge("k", l, 2), 3},
		"a fresh take":      {store.Mode{Fresh: true}, charge("k", l, 2), 3},
		"a cost of nothing": {store.Mode{}, charge("k", l, 0), 3},
		"another leased":    {store.Mode{}, leased, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, seen.Config{})
			s.take(store.Mode{}, 1, charge("k", l, 10))
			s.take(store.Mode{}, 2, charge("k", l, 2))
			s.take(tt.mode, tt.asked, tt.charge)
		})
	}
}

func TestTake_Bounded(t *testing.T) {
	for _, most := range []int{1, 4, 100} {
		s, l := begin(t, seen.Config{DenyKeys: most}), slow(t)
		bound := max(most, 4)
		for i := range int64(1000) {
			s.clock.Advance(1)
			s.take(store.Mode{}, i+1, charge(fmt.Sprint("key", i), l, 11))
			if got := s.memory.Stats().Denying; got > bound {
				t.Fatalf("remembers %d buckets, want at most %d", got, bound)
			}
		}
		if got := s.memory.Stats().Denying; got < bound/2 {
			t.Errorf("remembers %d buckets of 1000, want most of %d", got, bound)
		}
		s.take(store.Mode{}, 1000, charge("key999", l, 11))
		s.clock.Advance(2e6)
		for i := range int64(1000) {
			s.take(store.Mode{}, 1001+i, charge(fmt.Sprint("other", i), l, 1))
		}
		if got := s.memory.Stats().Denying; most == 4 && got != 0 {
			t.Errorf("remembers %d buckets that are of no more use", got)
		}
	}
}

func TestTake_DeniesNothing(t *testing.T) {
	s, l := begin(t, seen.Config{DenyFor: -1}), slow(t)
	for asked := range int64(5) {
		s.take(store.Mode{}, asked+1, charge("k", l, 11))
	}
	if err := s.store.Reset(t.Context(), []string{"k"}); err != nil {
		t.Error(err)
	}
	if got, want := s.memory.Stats(), (seen.Stats{}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A client with a latency of 0 that waits until the exact instant is admitted, although the store rounds instants.
func TestTake_CutInstants(t *testing.T) {
	l := compile(t, bucket.Spec{Capacity: bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: 10 * time.Microsecond}})
	clock := time.Hour + 999
	inner := &counted{Store: storetest.NewModel(func() bucket.Instant { return bucket.Instant(clock / time.Microsecond) })}
	for phase := range time.Microsecond { // the memory cuts them elsewhere
		s := remember(inner, seen.Config{Now: func() bucket.Instant { return bucket.Instant((clock + phase) / time.Microsecond) }})
		charges := []store.Charge{charge(fmt.Sprint("k", phase), l, 1)}
		clock = time.Hour + 999
		for range 2 {
			s.Take(t.Context(), nil, charges, store.Mode{})
		}
		clock += 10*time.Microsecond - 999 // the next time it is ten microseconds later to the store
		if _, allowed, err := s.Take(t.Context(), nil, charges, store.Mode{}); !allowed || err != nil {
			t.Errorf("phase %v: allowed %v, %v; the store would admit it", phase, allowed, err)
		}
	}
}
