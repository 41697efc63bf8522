// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

func limit(t testing.TB, capacity bucket.Tokens, rate string) bucket.Limit {
	t.Helper()
	r, err := bucket.ParseRate(rate)
	if err != nil {
		t.Fatal(err)
	}
	l, err := bucket.NewLimit(capacity, r)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A subject is a store under test, with helpers that fail on errors.
type subject struct {
	*testing.T
	store mete.Store
	clock *Clock

	admitted [][]mete.Refund          // takes that can be canceled
	taken    map[takenBy]bucket.Taken // by the steps of a vector
}

func newSubject(t *testing.T, open Open) *subject {
	t.Helper()
	clock := NewClock()
	return &subject{T: t, store: open(t, clock.Now), clock: clock}
}

func (s *subject) take(mode mete.Mode, charges ...store.Charge) ([]bucket.Snapshot, bool) {
	s.Helper()
	asked := slices.Clone(charges)
	snaps, allowed, err := s.store.Take(s.Context(), nil, asked, mode)
	clear(asked) // the caller uses its memory again
	if err != nil {
		s.Fatalf("take %v: %v", charges, err)
	}
	if len(snaps) != len(charges) {
		s.Fatalf("take of %d charges returned %d snapshots", len(charges), len(snaps))
	}
	return snaps, allowed
}

func (s *subject) assertRemaining(key string, l bucket.Limit, want bucket.Tokens) {
	s.Helper()
	snaps, _ := s.take(mete.Mode{DryRun: true}, store.Charge{Key: key, Limit: l})
	if got := snaps[0].Remaining(); got != want {
		s.Errorf("bucket %q holds %v tokens, want %v", key, got, want)
	}
}

func checkNewBucket(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 3*bucket.Token, "1/1s")
	s.assertRemaining("k", l, 3*bucket.Token)
	for i := range 4 {
		snaps, allowed := s.take(mete.Mode{}, store.Charge{Key: "k", Limit: l, Cost: bucket.Token})
		if want := i < 3; allowed != want || snaps[0].Allowed != want {
			t.Errorf("take %d of a bucket of 3: allowed %v, snapshot %v; want %v", i+1, allowed, snaps[0].Allowed, want)
		}
	}
	s.assertRemaining("other", l, 3*bucket.Token)
}

func checkDenial(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 2*bucket.Token, "1/10s")
	s.take(mete.Mode{}, store.Charge{Key: "k", Limit: l, Cost: 2 * bucket.Token})
	for range 100 { // repeated denials do not delay the refill
		s.clock.Advance(50_000)
		if _, allowed := s.take(mete.Mode{}, store.Charge{Key: "k", Limit: l, Cost: bucket.Token}); allowed {
			t.Fatalf("admitted %v after the start, before the bucket had refilled", s.clock.Now()-start)
		}
	}
	s.clock.Set(start + 10_000_000 - 1)
	snaps, allowed := s.take(mete.Mode{}, store.Charge{Key: "k", Limit: l, Cost: bucket.Token})
	if want := time.Microsecond; allowed || snaps[0].RetryAfter != want {
		t.Errorf("1 µs before the refill: allowed %v, retry after %v; want denied, %v", allowed, snaps[0].RetryAfter, want)
	}
	s.clock.Advance(1)
	if _, allowed := s.take(mete.Mode{}, store.Charge{Key: "k", Limit: l, Cost: bucket.Token}); !allowed {
		t.Error("denied at the promised instant")
	}
}

func checkDryRun(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 2*bucket.Token, "1/10s")
	for range 5 {
		if _, allowed := s.take(mete.Mode{DryRun: true}, store.Charge{Key: "k", Limit: l, Cost: 2 * bucket.Token}); !allowed {
			t.Fatal("a dry run was denied although nothing has been spent")
		}
	}
	s.take(mete.Mode{}, store.Charge{Key: "k", Limit: l, Cost: bucket.Token})
	snaps, allowed := s.take(mete.Mode{DryRun: true}, store.Charge{Key: "k", Limit: l, Cost: 2 * bucket.Token})
	if want := 10 * time.Second; allowed || snaps[0].RetryAfter != want {
		t.Errorf("dry run of 2 with 1 left: allowed %v, retry after %v; want denied, %v", allowed, snaps[0].RetryAfter, want)
	}
	s.assertRemaining("k", l, bucket.Token)
}

func checkAllOrNone(t *testing.T, open Open) {
	s := newSubject(t, open)
	user, global := limit(t, 10*bucket.Token, "1/1s"), limit(t, 3*bucket.Token, "1/1h")
	charges := []store.Charge{
		{Key: "a:user", Limit: user, Cost: bucket.Token},
		{Key: "b:global", Limit: global, Cost: bucket.Token},
		{Key: "c:new", Limit: user, Cost: bucket.Token},
	}
	for range 3 {
		if _, allowed := s.take(mete.Mode{}, charges...); !allowed {
			t.Fatal("denied with tokens in every bucket")
		}
	}
	for range 20 {
		snaps, allowed := s.take(mete.Mode{}, charges...)
		if allowed || !snaps[0].Allowed || snaps[1].Allowed || !snaps[2].Allowed {
			t.Fatalf("allowed %v, snapshots %v %v %v; want only the second to deny",
				allowed, snaps[0].Allowed, snaps[1].Allowed, snaps[2].Allowed)
		}
		if got := snaps[0].Remaining(); got != 7*bucket.Token {
			t.Fatalf("a denied request is shown with %v tokens in another bucket, want 7: it was charged", got)
		}
	}
	s.assertRemaining("a:user", user, 7*bucket.Token)
	s.assertRemaining("c:new", user, 7*bucket.Token)
}

func checkManyBuckets(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, bucket.Token, "1/1h")
	charges := make([]store.Charge, store.MaxCharges)
	for i := range charges {
		charges[i] = store.Charge{Key: fmt.Sprintf("k%02d", i), Limit: l, Cost: bucket.Token}
	}
	if _, allowed := s.take(mete.Mode{}, charges...); !allowed {
		t.Fatalf("take of %d full buckets denied", len(charges))
	}
	if snaps, allowed := s.take(mete.Mode{}, charges...); allowed || snaps[len(snaps)-1].Allowed {
		t.Error("take of empty buckets allowed")
	}
}

func checkSnapshotOrder(t *testing.T, open Open) {
	s := newSubject(t, open)
	prefix := []bucket.Snapshot{{RetryAfter: 42}}
	charges := []store.Charge{
		{Key: "a", Limit: limit(t, 1*bucket.Token, "1/1s"), Cost: bucket.Token},
		{Key: "b", Limit: limit(t, 2*bucket.Token, "1/1s"), Cost: bucket.Token},
	}
	snaps, _, err := s.store.Take(t.Context(), prefix, charges, mete.Mode{})
	if err != nil || len(snaps) != 3 || snaps[0].RetryAfter != 42 {
		t.Fatalf("got %d snapshots, error %v; want the one given and two more", len(snaps), err)
	}
	if snaps[1].Limit != charges[0].Limit || snaps[2].Limit != charges[1].Limit {
		t.Error("the snapshots are not in the order of the charges")
	}
}

func checkNever(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 2*bucket.Token, "1/1s")
	snaps, allowed := s.take(mete.Mode{}, store.Charge{Key: "k", Limit: l, Cost: 2*bucket.Token + 1})
	if allowed || snaps[0].RetryAfter != bucket.Never {
		t.Errorf("cost above capacity: allowed %v, retry after %v; want denied, never", allowed, snaps[0].RetryAfter)
	}
	s.assertRemaining("k", l, 2*bucket.Token)
}

func checkRefundBound(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 10*bucket.Token, "1/1h")
	refund := func(key string, cost bucket.Tokens) {
		t.Helper()
		if err := s.store.Refund(t.Context(), []mete.Refund{{Charge: store.Charge{Key: key, Limit: l, Cost: cost}}}, ""); err != nil {
			t.Fatal(err)
		}
	}
	s.take(mete.Mode{}, store.Charge{Key: "k", Limit: l, Cost: 8 * bucket.Token})
	refund("k", 3*bucket.Token)
	s.assertRemaining("k", l, 5*bucket.Token)
	refund("k", 100*bucket.Token)
	s.assertRemaining("k", l, 10*bucket.Token)
	refund("unknown", bucket.Token)
	s.assertRemaining("unknown", l, 10*bucket.Token)
}

func checkReset(t *testing.T, open Open) {
	s, l := newSubject(t, open), limit(t, 10*bucket.Token, "1/1h")
	for _, key := range []string{"a", "b", "c"} {
		s.take(mete.Mode{}, store.Charge{Key: key, Limit: l, Cost: 10 * bucket.Token})
	}
	if err := s.store.Reset(t.Context(), []string{"a", "b", "unknown"}); err != nil {
		t.Fatal(err)
	}
	s.assertRemaining("a", l, 10*bucket.Token)
	s.assertRemaining("b", l, 10*bucket.Token)
	s.assertRemaining("c", l, 0)
	if _, allowed := s.take(mete.Mode{}, store.Charge{Key: "a", Limit: l, Cost: 10 * bucket.Token}); !allowed {
		t.Error("a reset bucket denied its capacity")
	}
	s.assertRemaining("a", l, 0)
}

func checkLimitChange(t *testing.T, open Open) {
	s := newSubject(t, open)
	small, big := limit(t, 10*bucket.Token, "1/1h"), limit(t, 100*bucket.Token, "7/3h")
	s.take(mete.Mode{}, store.Charge{Key: "k", Limit: small, Cost: 9 * bucket.Token})
	s.assertRemaining("k", big, 91*bucket.Token)
	s.take(mete.Mode{}, store.Charge{Key: "k", Limit: big, Cost: 90 * bucket.Token})
	s.assertRemaining("k", small, 0)
	s.clock.Advance(3600e6)
	s.assertRemaining("k", small, bucket.Token)
}
