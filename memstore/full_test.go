// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// fullStore returns a store without space, until its clock has advanced by an hour.
func fullStore(t *testing.T) (*memstore.Store, *storetest.Clock) {
	t.Helper()
	clock := storetest.NewClock()
	s := mustNew(t, memstore.Config{MaxKeys: 50, Now: clock.Now})
	slow := memstore.LimitOf(t, bucket.Token, bucket.Token, time.Hour)
	for i := range 50 {
		take(t, s, fmt.Sprint("slow", i), slow, bucket.Token)
	}
	return s, clock
}

func takeCharges(t *testing.T, s *memstore.Store, mode mete.Mode, charges ...store.Charge) ([]bucket.Snapshot, bool) {
	t.Helper()
	snaps, allowed, err := s.Take(t.Context(), nil, charges, mode)
	if err != nil {
		t.Fatal(err)
	}
	return snaps, allowed
}

func TestStore_OnFullOpen(t *testing.T) {
	s, clock := fullStore(t)
	l := memstore.LimitOf(t, 2*bucket.Token, bucket.Token, time.Minute)
	c := store.Charge{Key: "new", Limit: l, Cost: bucket.Token, OnFull: store.OnFullOpen}
	for range 5 {
		snaps, allowed := takeCharges(t, s, mete.Mode{}, c)
		if !allowed || snaps[0].Spill != bucket.SpillOpened || snaps[0].Remaining() != bucket.Token {
			t.Fatalf("%+v, want opened with 1 of 2 tokens", snaps[0])
		}
	}
	c.Cost = 3 * bucket.Token
	if snaps, allowed := takeCharges(t, s, mete.Mode{}, c); allowed || snaps[0].RetryAfter != bucket.Never {
		t.Errorf("%+v, want denied: the cost never fits", snaps[0])
	}
	if got := s.Stats(); got.Opened != 5 || got.Overflowed != 0 || got.Closed != 0 || got.Keys != 50 {
		t.Errorf("stats %+v, want 5 opened: a cost that never fits needs no bucket", got)
	}
	clock.Advance(time.Hour.Microseconds()) // now there is space
	c.Cost = 2 * bucket.Token
	if snaps, allowed := takeCharges(t, s, mete.Mode{}, c); !allowed || snaps[0].Spill != bucket.SpillNone || snaps[0].Remaining() != 0 {
		t.Errorf("%+v, want a bucket of its own", snaps[0])
	}
	if _, allowed := takeCharges(t, s, mete.Mode{}, c); allowed {
		t.Error("the bucket was not charged")
	}
	memstore.CheckInvariants(t, s)
}

func TestStore_OnFullClosed(t *testing.T) {
	s, clock := fullStore(t)
	l := memstore.LimitOf(t, 2*bucket.Token, bucket.Token, time.Minute)
	open := store.Charge{Key: "a", Limit: l, Cost: bucket.Token, OnFull: store.OnFullOpen}
	closed := store.Charge{Key: "b", Limit: l, Cost: bucket.Token, OnFull: store.OnFullClosed}
	shared := store.Charge{Key: "shared:x=1", Limit: l, Cost: bucket.Token}
	takeShared := func(want bucket.Tokens) {
		t.Helper()
		if snaps, allowed := takeCharges(t, s, mete.Mode{}, shared); !allowed || snaps[0].Spill != bucket.SpillShared || snaps[0].Remaining() != want {
			t.Errorf("%+v, want the shared bucket with %v", snaps[0], want)
		}
	}
	takeShared(bucket.Token) // a full shared bucket could give its place to the key
	for _, mode := range []mete.Mode{{}, {DryRun: true}, {UpTo: true}, {MaxWait: time.Hour}, {MaxWait: bucket.Forced}, {ID: "id"}} {
		for _, cost := range []bucket.Tokens{0, bucket.Token} {
			closed.Cost = cost
			snaps, allowed := takeCharges(t, s, mode, open, closed, shared)
			if allowed || snaps[1].Allowed || snaps[1].Spill != bucket.SpillClosed || snaps[1].RetryAfter != store.FullRetry || snaps[1].Remaining() != 0 {
				t.Errorf("%+v, cost %v: %+v, want closed", mode, cost, snaps[1])
			}
		}
	}
	takeShared(0) // the denials did not charge it
	if got := s.Stats(); got.Opened != 10 || got.Closed != 10 || got.Overflowed != 12 || got.Spilled() != 32 {
		t.Errorf("stats %+v, want 10 opened, 10 closed and 12 shared: dry runs do not count", got)
	}
	clock.Advance(time.Hour.Microseconds())
	closed.Cost = bucket.Token
	if snaps, allowed := takeCharges(t, s, mete.Mode{}, closed); !allowed || snaps[0].Spill != bucket.SpillNone {
		t.Errorf("%+v, want a bucket of its own", snaps[0])
	}
	memstore.CheckInvariants(t, s)
}

// Known keys keep their buckets in a full store.
func TestStore_OnFullKnownKeys(t *testing.T) {
	s, _ := fullStore(t)
	slow := memstore.LimitOf(t, bucket.Token, bucket.Token, time.Hour)
	for _, o := range []store.OnFull{store.OnFullOpen, store.OnFullClosed} {
		snaps, allowed := takeCharges(t, s, mete.Mode{}, store.Charge{Key: "slow7", Limit: slow, Cost: bucket.Token, OnFull: o})
		if allowed || snaps[0].Spill != bucket.SpillNone || snaps[0].RetryAfter != time.Hour {
			t.Errorf("%v: %+v, want the bucket's own denial", o, snaps[0])
		}
	}
}

// A hold of an opened charge settles without a bucket.
func TestStore_OnFullHold(t *testing.T) {
	s, _ := fullStore(t)
	l := memstore.LimitOf(t, 5*bucket.Token, bucket.Token, time.Minute)
	hold := func(o store.OnFull) string {
		charges := []store.Charge{{Key: "new", Limit: l, Cost: bucket.Token, OnFull: o}}
		_, id, err := s.Hold(t.Context(), nil, charges, mete.Mode{}, store.Hold{ID: "0123456789abcdef", TTL: time.Minute, Terms: make([]store.Terms, 1)})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	if id := hold(store.OnFullClosed); id != "" {
		t.Error("a closed charge was held")
	}
	id := hold(store.OnFullOpen)
	if status, err := s.Settle(t.Context(), id, 3*bucket.Token); err != nil || !status.Settled {
		t.Errorf("settle: %+v, %v", status, err)
	}
	if got := s.Stats(); got.Keys != 50 || got.Overflowed != 0 {
		t.Errorf("stats %+v, want no new bucket", got)
	}
	memstore.CheckInvariants(t, s)
}
