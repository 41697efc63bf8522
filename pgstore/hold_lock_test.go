// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func holdOf(i int) store.Hold {
	return store.Hold{ID: fmt.Sprintf("hold%016d", i), TTL: time.Minute, Terms: make([]store.Terms, 1)}
}

// blockHoldRows lets calls read rows of holds, but not insert them, until release.
func blockHoldRows(t *testing.T, pool *pgxpool.Pool, schema string) (release func()) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), "LOCK TABLE "+schema+".bucket_hold IN SHARE ROW EXCLUSIVE MODE")
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// waitForLocks waits until so many calls of a schema wait for locks.
func waitForLocks(t *testing.T, pool *pgxpool.Pool, schema string, want int64) {
	t.Helper()
	until(t, func() error {
		const waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'"
		if n := number(t, pool, waiting, schema); n != want {
			return fmt.Errorf("%d calls wait for locks, want %d", n, want)
		}
		return nil
	})
}

// Two concurrent holds with one ID and different keys both look for the hold before one of them stores it. One must win,
// and the other charges nothing.
func TestHold_OneIDWithDifferentKeys(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	schema, l := migrated(t, pool), tokens(t, 10, "1/1000h")
	s := open(t, pool, pgstore.Config{Schema: schema, SweepEvery: -1, Timeout: awhile})
	release := blockHoldRows(t, pool, schema)
	var all sync.WaitGroup
	var won atomic.Int64
	for _, key := range []string{"a", "b"} {
		all.Go(func() {
			_, id, err := s.Hold(t.Context(), nil, of(l, 4, key), mete.Mode{}, holdOf(1))
			if err == nil && id != "" {
				won.Add(1)
			} else if !errors.Is(err, store.ErrHoldKeys) || mete.Spent(err) != mete.NotSpent {
				t.Errorf("hold of %s: id %q, error %v", key, id, err)
			}
		})
	}
	waitForLocks(t, pool, schema, 2)
	release()
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d holds with one ID, want 1", won.Load())
	}
	if status, err := s.Settle(t.Context(), holdOf(1).ID, 0); err != nil || !status.Settled {
		t.Errorf("settle: %+v, error %v", status, err)
	}
	holds(t, s, "a", l, 10*bucket.Token)
	holds(t, s, "b", l, 10*bucket.Token)
}

// TestHold_NoDeadlock makes and settles holds in an order that once locked the hold and its bucket in turn. Then many
// goroutines use few IDs and keys. PostgreSQL detects no deadlock, and exactly the settled tokens are missing.
func TestHold_NoDeadlock(t *testing.T) {
	t.Parallel()
	p := proctest.StartPostgres(t)
	options, err := pgxpool.ParseConfig(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	options.MaxConns = 16
	pool, own := poolTo(t, p.URL()), poolOf(t, options)
	t.Run("a hold with the ID of an ended one", func(t *testing.T) { holdAgain(t, pool, own) })
	t.Run("random", func(t *testing.T) { holdAtRandom(t, pool, own) })
	own.Close()
	pool.Close()
	pool = poolTo(t, p.URL())
	until(t, func() error { // each connection reports its deadlocks at its end
		if n := number(t, pool, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"); n > 1 {
			return fmt.Errorf("%d connections are still there", n)
		}
		return nil
	})
	if n := number(t, pool, "SELECT sum(deadlocks)::bigint FROM pg_stat_database"); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// holdAgain settles a hold between the charge and the record of a new hold with its ID.
func holdAgain(t *testing.T, pool, own *pgxpool.Pool) {
	clock := storetest.NewClock()
	schema, l := migrated(t, pool), tokens(t, 10, "1/1000h")
	s := open(t, own, pgstore.Config{Schema: schema, SweepEvery: -1, Timeout: awhile, Now: clock.Now})
	hold := func() {
		if _, id, err := s.Hold(t.Context(), nil, of(l, 4, "k"), mete.Mode{}, holdOf(1)); err != nil || id == "" {
			t.Errorf("id %q, error %v", id, err)
		}
	}
	hold()
	clock.Advance((time.Minute + store.RetryHorizon).Microseconds()) // no call finds the hold anymore, but its row stays
	release := blockHoldRows(t, pool, schema)
	var all sync.WaitGroup
	all.Go(hold)
	waitForLocks(t, pool, schema, 1)
	all.Go(func() {
		if status, err := s.Settle(t.Context(), holdOf(1).ID, 0); err != nil || !status.Settled {
			t.Errorf("settle: %+v, error %v", status, err)
		}
	})
	waitForLocks(t, pool, schema, 2)
	release()
	all.Wait()
}

// holdAtRandom uses each ID for holds of different keys. The first of them wins.
func holdAtRandom(t *testing.T, pool, own *pgxpool.Pool) {
	const goroutines, turns, ids, keys = 16, 40, 24, 4
	schema, l := migrated(t, pool), tokens(t, 100, "1/1000h")
	s := open(t, own, pgstore.Config{Schema: schema, SweepEvery: -1, Timeout: awhile})
	var firsts [ids]atomic.Int64 // 1 + the first key of the hold
	var all sync.WaitGroup
	for g := range goroutines {
		r := rand.New(testseed.PCG(uint64(g), 15))
		all.Go(func() {
			for range turns {
				i, first := r.IntN(ids), r.IntN(keys-1)
				h := holdOf(i)
				h.Terms, h.Refund = make([]store.Terms, 2), r.IntN(2) == 0
				var id string
				var err error
				switch r.IntN(4) {
				case 0:
					_, err = s.Settle(t.Context(), h.ID, bucket.Token)
				case 1:
					_, err = s.Renew(t.Context(), h.ID, time.Hour)
				default:
					_, id, err = s.Hold(t.Context(), nil, of(l, 2, fmt.Sprint(first), fmt.Sprint(first+1)), mete.Mode{}, h)
				}
				if err != nil && !errors.Is(err, store.ErrHoldKeys) {
					t.Error(err)
					return
				}
				if id == "" {
					continue
				}
				if won := int64(first) + 1; !firsts[i].CompareAndSwap(0, won) && firsts[i].Load() != won {
					t.Errorf("two holds with the ID %s", id)
				}
			}
		})
	}
	all.Wait()
	var want [keys]bucket.Tokens
	for i := range firsts {
		if first := firsts[i].Load(); first > 0 {
			want[first-1] += bucket.Token
			want[first] += bucket.Token
		}
		if _, err := s.Settle(t.Context(), holdOf(i).ID, bucket.Token); err != nil {
			t.Error(err)
		}
	}
	for i := range want {
		holds(t, s, fmt.Sprint(i), l, l.Capacity()-want[i])
	}
}
