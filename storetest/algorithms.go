// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// limitKinds returns one limit of each kind, with ten tokens that refill in ten seconds.
func limitKinds(t testing.TB) map[string]bucket.Limit {
	t.Helper()
	rate, second := bucket.Rate{Tokens: 10 * bucket.Token, Per: 10 * time.Second}, bucket.Rate{Tokens: bucket.Token, Per: time.Second}
	limits := map[string]bucket.Limit{}
	for name, spec := range map[string]bucket.Spec{
		"token bucket":         {Capacity: 10 * bucket.Token, Rate: rate},
		"leaky bucket":         {Capacity: 10 * bucket.Token, Rate: rate, Queue: 5 * bucket.Token},
		"fixed window":         {Algorithm: bucket.AlgorithmStepped, Capacity: 10 * bucket.Token, Rate: rate, Anchor: bucket.AnchorKey},
		"stepped bucket":       {Algorithm: bucket.AlgorithmStepped, Capacity: 10 * bucket.Token, Rate: second, Start: 300 * time.Millisecond},
		"stepped from first":   {Algorithm: bucket.AlgorithmStepped, Capacity: 10 * bucket.Token, Rate: second, Anchor: bucket.AnchorFirst},
		"sliding window":       {Algorithm: bucket.AlgorithmSlidingWindow, Rate: rate},
		"sliding log":          {Algorithm: bucket.AlgorithmSlidingLog, Rate: rate},
		"sliding log, no debt": {Algorithm: bucket.AlgorithmSlidingLog, Rate: rate, MaxReserved: new(bucket.Tokens)},
	} {
		l, _, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		limits[name] = l.ForKey(name)
	}
	return limits
}

func (s *subject) empty(key string, l bucket.Limit) {
	s.Helper()
	if _, allowed := s.take(mete.Mode{}, charge(key, l, l.Capacity())); !allowed {
		s.Fatalf("%s: a full bucket denied its capacity", key)
	}
	s.assertRemaining(key, l, 0)
}

// checkExactRetry: a cost is admitted after exactly its wait if there are no other takes.
func checkExactRetry(t *testing.T, open Open) {
	for name, l := range limitKinds(t) {
		if l.Queued() {
			continue // a queue admits immediately, with a later start
		}
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, open)
			s.take(mete.Mode{}, charge(name, l, 4*bucket.Token))
			s.clock.Advance(1_234_567)
			s.take(mete.Mode{}, charge(name, l, 6*bucket.Token))
			for range 5 {
				snaps, allowed := s.take(mete.Mode{}, charge(name, l, 7*bucket.Token))
				if allowed {
					s.clock.Advance(777_777)
					continue
				}
				s.clock.Advance(snaps[0].RetryAfter.Microseconds() - 1)
				if early, allowed := s.take(mete.Mode{}, charge(name, l, 7*bucket.Token)); allowed || early[0].RetryAfter != time.Microsecond {
					t.Errorf("1 µs early: allowed %v, %s", allowed, show(early))
				}
				s.clock.Advance(1)
				if late, allowed := s.take(mete.Mode{}, charge(name, l, 7*bucket.Token)); !allowed {
					t.Errorf("at the promised instant: %s", show(late))
				}
			}
		})
	}
}

func checkRefunds(t *testing.T, open Open) {
	for name, l := range limitKinds(t) {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, open)
			refund := func(cost bucket.Tokens) {
				t.Helper()
				if err := s.store.Refund(t.Context(), []mete.Refund{{Charge: charge(name, l, cost)}}, ""); err != nil {
					t.Fatal(err)
				}
			}
			s.empty(name, l)
			refund(3 * bucket.Token)
			s.assertRemaining(name, l, 3*bucket.Token)
			refund(100 * bucket.Token)
			s.assertRemaining(name, l, 10*bucket.Token)
			s.empty(name, l)
			if err := s.store.Reset(t.Context(), []string{name}); err != nil {
				t.Fatal(err)
			}
			s.assertRemaining(name, l, 10*bucket.Token)
		})
	}
}

// checkForcedDebt: a forced cost is charged up to the debt limit.
func checkForcedDebt(t *testing.T, open Open) {
	for name, l := range limitKinds(t) {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, open)
			s.empty(name, l)
			owe := min(l.MaxReserved(), 20*bucket.Token)
			if l.MaxReserved() > 0 {
				snaps, allowed := s.take(mete.Mode{MaxWait: bucket.Forced}, charge(name, l, owe))
				if !allowed || snaps[0].Wait() <= 0 {
					t.Errorf("a debt of %v: allowed %v, %s", owe, allowed, show(snaps))
				}
				before := snaps[0].FullAfter()
				if snaps, allowed = s.take(mete.Mode{}, charge(name, l, bucket.Token)); allowed {
					t.Errorf("admitted although it owes %v: %s", owe, show(snaps))
				}
				s.assertRemaining(name, l, 0)
				if snaps, _ = s.take(mete.Mode{DryRun: true}, charge(name, l, 0)); snaps[0].FullAfter() != before {
					t.Errorf("full after %v, and after a denial %v", before, snaps[0].FullAfter())
				}
			}
			if l.MaxReserved() <= owe {
				snaps, allowed := s.take(mete.Mode{MaxWait: bucket.Forced}, charge(name, l, bucket.Token))
				if allowed || snaps[0].RetryAfter <= 0 {
					t.Errorf("owes more than it may: allowed %v, %s", allowed, show(snaps))
				}
			}
		})
	}
}

// checkAllOrNoneOfEveryAlgorithm: if any limit denies, none is charged.
func checkAllOrNoneOfEveryAlgorithm(t *testing.T, open Open) {
	for denier := range limitKinds(t) {
		t.Run(denier, func(t *testing.T) {
			s, limits := newSubject(t, open), limitKinds(t)
			var charges []store.Charge
			for _, name := range slices.Sorted(maps.Keys(limits)) {
				charges = append(charges, charge(name, limits[name], 2*bucket.Token))
			}
			s.take(mete.Mode{}, charges...)
			// A queue admits costs up to its free places.
			s.take(mete.Mode{MaxWait: bucket.Forced}, charge(denier, limits[denier], 8*bucket.Token+min(limits[denier].MaxReserved(), 10*bucket.Token)))
			for range 3 {
				snaps, allowed := s.take(mete.Mode{}, charges...)
				for i, snap := range snaps {
					if allowed || snap.Allowed == (charges[i].Key == denier) {
						t.Errorf("allowed %v, %q %s; want only %q to deny", allowed, charges[i].Key, show(snaps[i:i+1]), denier)
					}
				}
			}
			for _, c := range charges {
				if c.Key != denier {
					s.assertRemaining(c.Key, c.Limit, 8*bucket.Token)
				}
			}
		})
	}
}
