// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/shards"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func TestSharded_ReplaysAnID(t *testing.T) {
	s, c := newHotStore(t), hot(t)
	c.Cost = 45 * bucket.Token
	user := store.Charge{Key: "user", Limit: tokens(t, 100, oneAnHour), Cost: bucket.Token}
	for attempt := range 3 { // the second attempt cannot be paid
		snaps, allowed := s.take(mete.Mode{ID: "a"}, c, user)
		if !allowed || snaps[0].Cost != c.Cost || snaps[1].Cost != user.Cost || !snaps[0].Allowed || !snaps[1].Allowed {
			t.Errorf("attempt %d: %v, costs %v and %v; want admitted, 45 and 1", attempt+1, allowed, snaps[0].Cost, snaps[1].Cost)
		}
	}
	s.holds(c, 55*bucket.Token)
	s.holds(user, 99*bucket.Token)

	s.take(mete.Mode{ID: "b"}, c, user)
	s.holds(c, 10*bucket.Token)
	if _, allowed := s.take(mete.Mode{ID: "c"}, c, user); allowed {
		t.Error("45 of 10 admitted under a third ID")
	}
	if _, allowed := s.take(mete.Mode{ID: "a", DryRun: true}, c, user); allowed {
		t.Error("dry run of 45 of 10 admitted: an ID makes no difference to it")
	}
	s.clock.Advance(5e6)
	if _, allowed := s.take(mete.Mode{ID: "c"}, c, user); !allowed {
		t.Error("a denial was not decided anew")
	}
	s.holds(c, 15*bucket.Token)
}

func TestSharded_ForgetsAnID(t *testing.T) {
	s, c := newHotStore(t), hot(t)
	c.Limit = tokens(t, 100, oneAnHour) // shards that are not full get their part
	s.take(mete.Mode{ID: "a"}, c)
	s.clock.Advance(store.RetryHorizon.Microseconds() - 1)
	s.take(mete.Mode{ID: "a"}, c)
	s.holds(c, 99_003)
	s.clock.Advance(1)
	s.take(mete.Mode{ID: "a"}, c)
	s.holds(c, 98_003)
}

func TestSharded_ReplaysUpTo(t *testing.T) {
	s, c := newHotStore(t), hot(t)
	c.Cost = 70*bucket.Token + 7
	for _, tt := range []struct {
		id        string
		cost, now bucket.Tokens
	}{{"a", 70_007, 29_993}, {"b", 29_000, 993}, {"a", 70_007, 993}, {"b", 29_000, 993}} {
		snaps, allowed := s.take(mete.Mode{ID: tt.id, UpTo: true}, c)
		if !allowed || snaps[0].Cost != tt.cost {
			t.Errorf("up to 70.007 as %q: %v, %v; want admitted, %v", tt.id, allowed, snaps[0].Cost, tt.cost)
		}
		s.holds(c, tt.now)
	}
}

func TestSharded_ReplayWaitsLongEnough(t *testing.T) {
	s, c := newHotStore(t), hot(t)
	c.Cost = 130 * bucket.Token
	first, _ := s.take(mete.Mode{ID: "a", MaxWait: time.Minute}, c)
	s.clock.Advance(1e6)
	again, allowed := s.take(mete.Mode{ID: "a", MaxWait: time.Minute}, c)
	if !allowed || first[0].Wait() != 3*time.Second || again[0].Wait() != 2*time.Second {
		t.Errorf("130 of 100: %v, wait %v, and %v a second later; want 3s, 2s", allowed, first[0].Wait(), again[0].Wait())
	}
}

func TestSharded_OneIDManyAttempts(t *testing.T) {
	onEachStore(t, func(t *testing.T, shared mete.Store, _ *storetest.Clock) {
		c := hot(t)
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 20 {
					_, allowed, err := shared.Take(t.Context(), nil, []store.Charge{c}, mete.Mode{ID: "a"})
					if err != nil {
						t.Error(err)
					}
					if allowed {
						admitted.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if admitted.Load() != 320 {
			t.Errorf("%d of 320 attempts under one ID were admitted", admitted.Load())
		}
		snaps, _, _ := shared.Take(t.Context(), nil, []store.Charge{c}, mete.Mode{DryRun: true})
		if left := snaps[0].Remaining(); left != 99*bucket.Token {
			t.Errorf("%v left of 100, want 99", left)
		}
	})
}

// In a store that is full of keys, two markers may share a bucket. Neither take gets the other's answer.
func TestSharded_ForeignMarker(t *testing.T) {
	s, c := newHotStore(t), hot(t)
	const before = 20
	shared := shards.New(&renamed{s.asked.Store}, func(int) int { return 0 })
	for i := range before {
		_, allowed, err := shared.Take(t.Context(), nil, []store.Charge{c}, mete.Mode{ID: string(rune('a' + i))})
		if err != nil || !allowed {
			t.Fatalf("take %d: %v, error %v; want admitted", i+1, allowed, err)
		}
	}
	s.holds(c, (100-before)*bucket.Token)
}

// renamed gives all marker keys one name.
type renamed struct{ mete.Store }

func (r *renamed) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	charges = slices.Clone(charges)
	for i := range charges {
		if strings.HasPrefix(charges[i].Key, "|#") {
			charges[i].Key = "|#one"
		}
	}
	return r.Store.Take(ctx, dst, charges, mode)
}
