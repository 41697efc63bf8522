// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

func charge(key string, l bucket.Limit, cost bucket.Tokens) store.Charge {
	return store.Charge{Key: key, Limit: l, Cost: cost}
}

func checkIDChargesOnce(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 10*bucket.Token, "1/1h")
	charges := []store.Charge{charge("a", l, 3*bucket.Token), charge("b", l, 2*bucket.Token)}
	first, _ := s.take(mete.Mode{ID: "x"}, charges...)
	for range 3 {
		s.clock.Advance(1e6)
		if again, allowed := s.take(mete.Mode{ID: "x"}, charges...); !allowed || !slices.Equal(again, first) {
			t.Errorf("the take came again: allowed %v, %s; want what it was, %s", allowed, show(again), show(first))
		}
	}
	s.take(mete.Mode{ID: "y", UpTo: true}, charge("c", l, 99*bucket.Token))
	if again, allowed := s.take(mete.Mode{ID: "y", UpTo: true}, charge("c", l, 99*bucket.Token)); !allowed || again[0].Cost != 10*bucket.Token {
		t.Errorf("a part was taken, and came again: allowed %v, %s; want the part", allowed, show(again))
	}
	s.clock.Set(start)
	s.assertRemaining("a", l, 7*bucket.Token)
	s.assertRemaining("b", l, 8*bucket.Token)
}

func checkIDAndKeys(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 10*bucket.Token, "1/1h")
	for attempt := range bucket.Tokens(2) { // another key or ID is another take, another cost is not, and no take evicts another
		s.take(mete.Mode{ID: "x"}, charge("a", l, bucket.Token+attempt))
		s.take(mete.Mode{ID: "x"}, charge("b", l, bucket.Token))
		s.take(mete.Mode{ID: "x"}, charge("a", l, bucket.Token), charge("b", l, bucket.Token))
		s.take(mete.Mode{ID: "z"}, charge("a", l, bucket.Token))
	}
	s.assertRemaining("a", l, 7*bucket.Token)
	s.assertRemaining("b", l, 8*bucket.Token)
}

func checkIDOfDenial(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 2*bucket.Token, "1/10s")
	s.take(mete.Mode{}, charge("k", l, 2*bucket.Token))
	for range 2 {
		if _, allowed := s.take(mete.Mode{ID: "x"}, charge("k", l, bucket.Token)); allowed {
			t.Error("an empty bucket admitted")
		}
	}
	s.clock.Advance(10e6)
	if _, allowed := s.take(mete.Mode{ID: "x"}, charge("k", l, bucket.Token)); !allowed {
		t.Error("a denial was remembered")
	}
	s.assertRemaining("k", l, 0)
}

func checkIDOfDryRun(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 2*bucket.Token, "1/1h")
	s.take(mete.Mode{ID: "x", DryRun: true}, charge("k", l, bucket.Token))
	s.take(mete.Mode{ID: "x"}, charge("k", l, bucket.Token))
	s.assertRemaining("k", l, bucket.Token)
	s.take(mete.Mode{}, charge("k", l, bucket.Token))
	if _, allowed := s.take(mete.Mode{ID: "x", DryRun: true}, charge("k", l, bucket.Token)); allowed {
		t.Error("a dry run was answered from memory")
	}
}

func checkIDExpiry(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 10*bucket.Token, "1/1h")
	horizon := store.RetryHorizon.Microseconds()
	s.take(mete.Mode{ID: "x"}, charge("k", l, bucket.Token))
	s.clock.Set(start + bucket.Instant(horizon) - 1)
	if snaps, _ := s.take(mete.Mode{ID: "x"}, charge("k", l, bucket.Token)); snaps[0].Remaining() != 9*bucket.Token {
		t.Errorf("within %v: %s, want it remembered", store.RetryHorizon, show(snaps))
	}
	s.clock.Set(start + 2*bucket.Instant(horizon))
	s.take(mete.Mode{ID: "x"}, charge("k", l, bucket.Token))
	s.clock.Advance(2 * horizon)
	refilled := bucket.Tokens(4 * horizon * int64(bucket.Token) / time.Hour.Microseconds())
	s.assertRemaining("k", l, 8*bucket.Token+refilled)
}

// checkConcurrentIDs makes the same attempts in many goroutines.
func checkConcurrentIDs(t *testing.T, open Open) {
	const ids = 50
	s, l := newSubject(t, open), limit(t, 1000*bucket.Token, "1/1000h")
	var admitted atomic.Int64
	race(func(r *rand.Rand) {
		for _, id := range r.Perm(ids) {
			name := mete.Mode{ID: string(rune('0' + id))}
			charges := []store.Charge{charge("a", l, bucket.Token), charge("b", l, bucket.Token)}
			if _, allowed, err := s.store.Take(t.Context(), nil, charges, name); err != nil {
				t.Error(err)
			} else if allowed {
				admitted.Add(1)
			}
		}
	})
	if got := admitted.Load(); got != ids*racers {
		t.Errorf("%d of %d attempts were admitted", got, ids*racers)
	}
	s.assertRemaining("a", l, (1000-ids)*bucket.Token)
	s.assertRemaining("b", l, (1000-ids)*bucket.Token)
}

// checkRefundID: within the retry horizon, a repeated refund does nothing. It is independent of a
// take's ID.
func checkRefundID(t *testing.T, open Open) {
	l := limit(t, 10*bucket.Token, "1/1h")
	s := newSubject(t, open)
	back := func(id, key string) {
		t.Helper()
		if err := s.store.Refund(t.Context(), Refunds(charge(key, l, 2*bucket.Token)), id); err != nil {
			t.Fatal(err)
		}
	}
	s.take(mete.Mode{ID: "one"}, charge("a", l, 10*bucket.Token))
	s.take(mete.Mode{}, charge("b", l, 10*bucket.Token))
	back("one", "a")
	back("one", "a")
	s.assertRemaining("a", l, 2*bucket.Token)
	back("two", "a")
	s.assertRemaining("a", l, 4*bucket.Token)
	back("one", "b")
	s.assertRemaining("b", l, 2*bucket.Token)
	s.clock.Advance(store.RetryHorizon.Microseconds() + 1)
	back("one", "a")
	s.assertRemaining("a", l, 6*bucket.Token+33*bucket.Token/1000)
	back("", "a")
	back("", "a")
	s.assertRemaining("a", l, 10*bucket.Token)
}
