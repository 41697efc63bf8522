// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func penalized(t *testing.T, key string) store.Charge {
	t.Helper()
	p, err := bucket.NewPenalty(time.Minute, time.Hour, 2*bucket.Token)
	if err != nil {
		t.Fatal(err)
	}
	return store.Charge{Key: key, Limit: mustLimit(t, bucket.Token, bucket.Token), Cost: bucket.Token, Penalty: p}
}

func ask(t *testing.T, s *memstore.Store, c store.Charge) bucket.Snapshot {
	t.Helper()
	snaps, _, err := s.Take(t.Context(), nil, []store.Charge{c}, mete.Mode{})
	if err != nil {
		t.Fatal(err)
	}
	return snaps[0]
}

func assertPenalty(t *testing.T, snap bucket.Snapshot, left time.Duration, level int64) {
	t.Helper()
	if gotLeft, gotLevel := snap.Penalty(); gotLeft != left || gotLevel != level {
		t.Errorf("penalty of %v, level %d; want %v, level %d", gotLeft, gotLevel, left, level)
	}
}

// A saved file keeps penalties and levels, also if the clock was set back.
func TestSave_Penalties(t *testing.T) {
	clock := storetest.NewClock()
	s := mustNew(t, memstore.Config{Now: clock.Now})
	running, over, gone := penalized(t, "login:user=a"), penalized(t, "login:user=b"), penalized(t, "login:user=c")
	for _, c := range []store.Charge{gone, over, running} {
		ask(t, s, c)
		ask(t, s, c)
		clock.Advance((40 * time.Minute).Microseconds())
	}
	ask(t, s, running)
	assertPenalty(t, ask(t, s, running), 2*time.Minute, 2)
	path := filepath.Join(t.TempDir(), "buckets")
	if err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	restore := func() *memstore.Store {
		r, err := memstore.Restore(path, memstore.Config{Now: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	clock.Advance((time.Minute).Microseconds())
	r := restore()
	if got := r.Stats().Penalties; got != 1 {
		t.Errorf("%d penalties after the restart, want 1", got)
	}
	assertPenalty(t, ask(t, r, running), time.Minute, 2)
	clock.Advance(-(time.Hour).Microseconds())
	assertPenalty(t, ask(t, restore(), running), 2*time.Minute, 2)
}

// A full store starts no further penalty, and its buckets still deny.
func TestPenalties_Bound(t *testing.T) {
	clock := storetest.NewClock()
	s := mustNew(t, memstore.Config{Now: clock.Now, MaxKeys: 100})
	for i := range 110 {
		c := penalized(t, fmt.Sprint("user", i))
		ask(t, s, c)
		snap := ask(t, s, c)
		if snap.Allowed {
			t.Fatal("an empty bucket admitted a token")
		}
		clock.Advance(2_000_000) // the bucket is full and can be evicted
	}
	stats := s.Stats()
	if stats.Penalties != 100 || stats.Unpenalized != 10 {
		t.Errorf("%d penalties and %d denials without one, want 100 and 10", stats.Penalties, stats.Unpenalized)
	}
	clock.Advance((3 * time.Hour).Microseconds())
	c := penalized(t, "late")
	ask(t, s, c)
	assertPenalty(t, ask(t, s, c), time.Minute, 1)
	if got := s.Stats().Penalties; got > 100 {
		t.Errorf("%d penalties, want at most 100", got)
	}
}

// A flood of denials during a penalty allocates nothing.
func TestPenalties_DenialAllocatesNothing(t *testing.T) {
	s := mustNew(t, memstore.Config{})
	charges := []store.Charge{penalized(t, "k")}
	ask(t, s, charges[0])
	ask(t, s, charges[0])
	var snaps [1]bucket.Snapshot
	least := math.Inf(1)
	for range 20 { // with the race detector, a sync.Pool drops some of its objects
		least = min(least, testing.AllocsPerRun(1, func() {
			if _, allowed, _ := s.Take(t.Context(), snaps[:0], charges, mete.Mode{}); allowed {
				t.Fatal("admitted during a penalty")
			}
		}))
	}
	if least != 0 {
		t.Errorf("%v allocations per denial, want 0", least)
	}
}
