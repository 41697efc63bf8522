// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/storetest"
)

// TestVersions_Conserve takes from the same buckets in two stores with two versions of a policy. Each version
// admits exactly the content of its own bucket, and both find it empty then.
func TestVersions_Conserve(t *testing.T) {
	const keys = 8
	pool := newPool(t)
	schema := migrated(t, pool)
	versions := []bucket.Limit{tokens(t, 60, "1/1000h"), tokens(t, 40, "1/900h")}
	var admitted [2][keys]atomic.Int64
	var all sync.WaitGroup
	for v, l := range versions {
		s := open(t, newPool(t), pgstore.Config{Schema: schema, Timeout: awhile, SweepEvery: often, MaxBatch: 16})
		for g := range 8 {
			r := rand.New(testseed.PCG(uint64(v), uint64(g)))
			all.Go(func() {
				for range 40 {
					at := []int{r.IntN(keys)}
					if r.IntN(3) == 0 {
						at = r.Perm(keys)[:2]
						slices.Sort(at)
					}
					var names []string
					for _, k := range at {
						names = append(names, keyOf(k))
					}
					_, allowed, err := s.Take(context.Background(), nil, of(l, 1, names...), mete.Mode{})
					if err != nil {
						t.Error(err)
						return
					}
					if allowed {
						for _, k := range at {
							admitted[v][k].Add(1)
						}
					}
				}
			})
		}
	}
	all.Wait()
	s := open(t, pool, pgstore.Config{Schema: schema, Timeout: awhile, SweepEvery: -1})
	for k := range keys {
		for v, l := range versions {
			mine, other := admitted[v][k].Load(), admitted[1-v][k].Load()
			holds := int64(l.Capacity() / bucket.Token)
			snaps, _ := takes(t, s, of(l, 0, keyOf(k)), mete.Mode{DryRun: true})
			missing := holds - snaps[0].Remaining().Whole()
			if mine > holds {
				t.Errorf("%s: version %d admitted %d of %d", keyOf(k), v, mine, holds)
			}
			if missing < min(holds, mine) || missing > min(holds, mine+other) {
				t.Errorf("%s: version %d misses %d after %d takes of its own and %d of the other's", keyOf(k), v, missing, mine, other)
			}
		}
	}
	if n := number(t, pool, "SELECT count(*) FROM "+schema+".bucket WHERE others IS NOT NULL"); n == 0 {
		t.Error("no row has two accounts")
	}
}

// TestRow_Unreadable has rows of a later version, and invalid rows. Using one is an error with a remedy until it
// is reset. Other buckets are not affected.
func TestRow_Unreadable(t *testing.T) {
	pool := newPool(t)
	schema := migrated(t, pool)
	s := open(t, pool, pgstore.Config{Schema: schema, Timeout: awhile, SweepEvery: -1})
	l := tokens(t, 10, "1/1000h")
	own := "1:" + l.Encode()
	for i, row := range [][2]string{
		{"2:" + l.Encode(), "NULL"}, {"1:1,2,3", "NULL"}, {"1:1,2,3,4,12", "NULL"}, {"1:1,2,0,4,0", "NULL"}, {l.Encode(), "NULL"}, {"x", "NULL"},
		{"1:12345678901234567,0,1,1,0", "NULL"}, {"1:1,0,1,1,1234567890123456789", "NULL"}, {"1:1,0,1,86400000000,13,day.0.1.0000." + strings.Repeat("a", 65), "NULL"},
		{own, "ARRAY[ROW('2:x', 1, 1, 0, NULL)::" + schema + ".account]"},
	} {
		key := fmt.Sprint("bad", i)
		run(t, pool, "INSERT INTO "+schema+".bucket (key, lim, spent, as_of, full_at, others) VALUES ($1, $2, 1, 1, 9e15, "+row[1]+")", []byte(key), row[0])
		var all sync.WaitGroup
		for j := range 8 { // in the same call
			all.Go(func() {
				good := of(l, 1, fmt.Sprint("good", j))
				if _, allowed, err := s.Take(context.Background(), nil, good, mete.Mode{UpTo: true}); err != nil || !allowed {
					t.Errorf("%q beside %q: allowed %v, %v", good[0].Key, row, allowed, err)
				}
				for _, mode := range []mete.Mode{{}, {UpTo: true}} {
					_, _, err := s.Take(context.Background(), nil, of(l, 1, key), mode)
					if notSpent(t, err, nil); err == nil || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "reset the key") {
						t.Errorf("%q: %v, want an error that names the key and says what to do", row, err)
					}
				}
			})
		}
		all.Wait()
		if n := number(t, pool, "SELECT count(*) FROM "+schema+".bucket_view WHERE key = $1", key); i == 0 && n != 1 {
			t.Errorf("%q is in the view %d times", row, n)
		}
		if err := s.Refund(t.Context(), storetest.Refunds(of(l, 1, key)...), ""); err == nil {
			t.Errorf("%q: a refund is no error", row)
		}
		if err := s.Reset(t.Context(), []string{key}); err != nil {
			t.Error(err)
		}
		holds(t, s, key, l, l.Capacity())
	}
}

// TestSweep_SeveralAccounts keeps a row until all of its accounts are full. The view shows each of them.
func TestSweep_SeveralAccounts(t *testing.T) {
	pool := newPool(t)
	schema := migrated(t, pool)
	s := open(t, pool, pgstore.Config{Schema: schema, Timeout: awhile, SweepEvery: -1})
	slow, quick := tokens(t, 10, "1/1h"), tokens(t, 5, "100/1ms")
	takes(t, s, of(slow, 4, "k"), mete.Mode{})
	takes(t, s, of(quick, 1, "k"), mete.Mode{})
	takes(t, s, of(quick, 1, "only quick"), mete.Mode{})
	if got := lines(t, pool, "SELECT capacity::text FROM "+schema+".bucket_view WHERE key = 'k' ORDER BY number"); !slices.Equal(got, []string{"5.000", "10.000"}) {
		t.Errorf("the view shows accounts of capacity %q", got)
	}
	open(t, pool, pgstore.Config{Schema: schema, Timeout: awhile, SweepEvery: often})
	until(t, func() error {
		if got := keysOf(t, pool, schema); !slices.Equal(got, []string{"k"}) {
			return fmt.Errorf("rows of %q, want that of k", got)
		}
		return nil
	})
	holds(t, s, "k", slow, 5*bucket.Token)
	run(t, pool, "UPDATE "+schema+".bucket SET others[1].as_of = 0, full_at = 0")
	until(t, func() error {
		if got := keysOf(t, pool, schema); len(got) > 0 {
			return fmt.Errorf("rows of %q, want none", got)
		}
		return nil
	})
}

// TestReset_IsOneStep resets three buckets: the first has no row, and the second is locked. A take of the first
// and third comes before or after the whole reset.
func TestReset_IsOneStep(t *testing.T) {
	pool := newPool(t)
	schema := migrated(t, pool)
	s := open(t, pool, pgstore.Config{Schema: schema, Timeout: awhile, SweepEvery: -1})
	l := tokens(t, 10, "1/1000h")
	takes(t, s, of(l, 1, "m"), mete.Mode{})
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "SELECT FROM "+schema+".bucket WHERE key = 'm' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	waiting := func(n int64, done <-chan error) {
		t.Helper()
		until(t, func() error {
			if got := number(t, pool, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%'||$1||'%'", schema); got < n && len(done) == 0 {
				return fmt.Errorf("%d wait, want %d", got, n)
			}
			return nil
		})
	}
	reset, took := make(chan error, 1), make(chan error, 1)
	go func() { reset <- s.Reset(context.Background(), []string{"z", "a", "m", "a"}) }()
	waiting(1, reset)
	go func() {
		err := pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
			_, _, err := s.TakeTx(context.Background(), tx, nil, of(l, 3, "a", "z"), mete.Mode{})
			return err
		})
		took <- err
	}()
	waiting(2, took)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, done := range []chan error{reset, took} {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	snaps, _ := takes(t, s, of(l, 0, "a", "m", "z"), mete.Mode{DryRun: true})
	if a, z := snaps[0].Remaining(), snaps[2].Remaining(); a != z {
		t.Errorf("a take of both is missing in one of them: they hold %v and %v", a, z)
	}
	if got := snaps[1].Remaining(); got != l.Capacity() {
		t.Errorf("m holds %v after its reset", got)
	}
}

// TestRefundTx_ID refunds once if the transaction commits, and not at all if it rolls back.
func TestRefundTx_ID(t *testing.T) {
	d := newDesk(t)
	takes(t, d.store, of(d.limit, 10, "k"), mete.Mode{ID: "x"})
	back := storetest.Refunds(of(d.limit, 2, "k")...)
	tx := d.begin(pgx.TxOptions{})
	for range 2 {
		if err := d.store.RefundTx(t.Context(), tx, back, "x"); err != nil {
			t.Fatal(err)
		}
	}
	d.rollback(tx)
	d.has(0, 0)
	tx = d.begin(pgx.TxOptions{})
	for range 2 {
		if err := d.store.RefundTx(t.Context(), tx, back, "x"); err != nil {
			t.Fatal(err)
		}
	}
	d.commit(tx)
	d.has(0, 2)
	if err := d.store.Refund(t.Context(), back, "x"); err != nil {
		t.Fatal(err)
	}
	d.has(0, 2)
	if err := d.store.Refund(t.Context(), back, "y"); err != nil {
		t.Fatal(err)
	}
	d.has(0, 4)
}

// TestTakeTx_ClockAfterTheLock waits for one bucket while another bucket of the take is spent, or spent and
// swept. The take is decided by the state after the wait.
func TestTakeTx_ClockAfterTheLock(t *testing.T) {
	for _, tt := range []struct {
		name, rate string
		sweeps     bool
		allowed    bool
	}{
		{"swept", "10/1ms", true, true},
		{"refilled", "10/1ms", false, true},
		{"spent", "10/1000h", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t)
			other := tokens(t, 10, tt.rate)
			first := d.begin(pgx.TxOptions{})
			d.take(first, 1, mete.Mode{}, "a")
			type answer struct {
				allowed bool
				err     error
			}
			done := make(chan answer, 1)
			second := d.begin(pgx.TxOptions{})
			go func() {
				both := append(of(d.limit, 1, "a"), of(other, 10, "b")...)
				_, allowed, err := d.store.TakeTx(context.Background(), second, nil, both, mete.Mode{})
				done <- answer{allowed, err}
			}()
			until(t, func() error {
				if n := number(t, d.pool, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%'||$1||'%'", d.schema); n != 1 {
					return fmt.Errorf("%d wait, want 1", n)
				}
				return nil
			})
			takes(t, d.store, of(other, 10, "b"), mete.Mode{})
			if tt.sweeps {
				open(t, d.pool, pgstore.Config{Schema: d.schema, SweepEvery: often, Timeout: awhile})
			}
			until(t, func() error {
				if tt.name == "swept" && len(keysOf(t, d.pool, d.schema)) > 0 {
					return fmt.Errorf("b is there")
				}
				return nil
			})
			due := serverTime(t, d.pool) + 2000 // it has refilled by then
			until(t, func() error {
				if now := serverTime(t, d.pool); now <= due {
					return fmt.Errorf("it is %d", now)
				}
				return nil
			})
			released := serverTime(t, d.pool)
			d.commit(first)
			got := <-done
			if got.err != nil || got.allowed != tt.allowed {
				t.Fatalf("allowed %v, %v; want %v", got.allowed, got.err, tt.allowed)
			}
			d.commit(second)
			if !tt.allowed {
				return
			}
			if at := number(t, d.pool, "SELECT as_of FROM "+d.schema+".bucket WHERE key = 'b'"); at < released {
				t.Errorf("b is charged %d µs before the end of the wait: what has come back since is there twice", released-at)
			}
		})
	}
}
