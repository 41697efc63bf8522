// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

const often = 5 * time.Millisecond // between two sweeps

func serverTime(t testing.TB, pool *pgxpool.Pool) int64 {
	t.Helper()
	return number(t, pool, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
}

// keysOf returns the keys with rows.
func keysOf(t testing.TB, pool *pgxpool.Pool, schema string) []string {
	t.Helper()
	return lines(t, pool, "SELECT convert_from(key, 'UTF8') FROM "+schema+".bucket ORDER BY key")
}

// TestSweep_OfFullBuckets sweeps one table in two stores by their intervals: every row is deleted, and none
// before its bucket is full.
func TestSweep_OfFullBuckets(t *testing.T) {
	pool := newPool(t)
	schema := migrated(t, pool)
	s := open(t, pool, pgstore.Config{Schema: schema, SweepEvery: -1, Timeout: awhile})
	specs := []bucket.Spec{
		{Capacity: 10 * bucket.Token},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 10 * bucket.Token},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 10 * bucket.Token, Anchor: bucket.AnchorFirst},
		{Algorithm: bucket.AlgorithmSlidingWindow},
		{Algorithm: bucket.AlgorithmSlidingLog},
	}
	full := map[string]int64{} // the earliest time when a bucket can be full
	for i := range 60 {
		spec := specs[i%len(specs)]
		spec.Rate = bucket.Rate{Tokens: 10 * bucket.Token, Per: time.Duration(1+i) * 20 * time.Millisecond}
		charges := of(compiled(t, spec), 1+bucket.Tokens(i)%10, fmt.Sprintf("k%03d", i))
		mode := mete.Mode{UpTo: i%4 == 0}
		if i%7 == 0 {
			mode.MaxWait, mode.UpTo = bucket.Forced, false
		}
		now := serverTime(t, pool)
		snaps, _ := takes(t, s, charges, mode)
		full[charges[0].Key] = now + snaps[0].FullAfter().Microseconds()
	}
	never := of(tokens(t, 10, "1/1h"), 1, "never")
	takes(t, s, never, mete.Mode{})

	a := open(t, pool, pgstore.Config{Schema: schema, SweepEvery: often})
	b := open(t, pool, pgstore.Config{Schema: schema, SweepEvery: often})
	until(t, func() error {
		there := keysOf(t, pool, schema)
		now := serverTime(t, pool)
		for key, at := range full {
			if at > now && !slices.Contains(there, key) {
				t.Fatalf("%s has gone, %d µs before it is full", key, at-now)
			}
		}
		if len(there) > 1 {
			return fmt.Errorf("%d rows are left", len(there))
		}
		return nil
	})
	holds(t, s, "never", never[0].Limit, 9*bucket.Token)
	until(t, func() error { // the last sweep may not be counted yet, and one sweep may have deleted all
		if a.Stats().Swept+b.Stats().Swept == 0 {
			return errors.New("no rows were swept")
		}
		return nil
	})
	if got := a.Stats().Swept + b.Stats().Swept; got > int64(len(full)) {
		t.Errorf("%d rows were swept, want %d", got, len(full))
	}
}

// TestSweep_SkipsLockedRows locks a full row: a sweep does not wait for it, so no take waits for the sweep.
func TestSweep_SkipsLockedRows(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	schema := migrated(t, pool)
	s := open(t, pool, pgstore.Config{Schema: schema, SweepEvery: -1, Timeout: awhile})
	l := tokens(t, 10, "10/1ms")
	takes(t, s, of(l, 1, "k500"), mete.Mode{})
	run(t, pool, "UPDATE "+schema+".bucket SET full_at = 0")
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), "SELECT FROM "+schema+".bucket FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	sweeper := open(t, pool, pgstore.Config{Schema: schema, SweepEvery: often, Timeout: awhile})
	for i := range 1000 {
		if i != 500 {
			takes(t, sweeper, of(l, 1, fmt.Sprintf("k%03d", i)), mete.Mode{})
		}
	}
	left := func(want ...string) {
		t.Helper()
		until(t, func() error {
			if got := keysOf(t, pool, schema); !slices.Equal(got, want) {
				return fmt.Errorf("%d rows are left, want %q", len(got), want)
			}
			return nil
		})
	}
	left("k500")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	left()
}

// TestSweep_FullRowThatIsTakenFrom keeps takes between the read of a row and its deletion: a locked row stays,
// full or not.
func TestSweep_FullRowThatIsTakenFrom(t *testing.T) {
	pool := newPool(t)
	schema := migrated(t, pool)
	s := open(t, pool, pgstore.Config{Schema: schema, SweepEvery: -1, Timeout: awhile})
	l := tokens(t, 1000, "1/1h")
	takes(t, s, of(l, 1, "k"), mete.Mode{})
	run(t, pool, "UPDATE "+schema+".bucket SET spent = 0, full_at = 0")
	open(t, pool, pgstore.Config{Schema: schema, SweepEvery: often})
	for i := range 200 { // each of them finds it full, or deleted
		takes(t, s, of(l, 1, "k"), mete.Mode{})
		holds(t, s, "k", l, 999*bucket.Token)
		if i%2 == 0 {
			run(t, pool, "UPDATE "+schema+".bucket SET spent = 0, full_at = 0")
		} else if err := s.Reset(t.Context(), []string{"k"}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSweep_InSmallBatches calls the function directly: it deletes at most the given number, and returns the
// number.
func TestSweep_InSmallBatches(t *testing.T) {
	pool := newPool(t)
	schema := migrated(t, pool)
	run(t, pool, "INSERT INTO "+schema+".bucket (key, lim, spent, as_of, full_at) SELECT i::text::bytea, '', 1, 0, 0 FROM generate_series(1, 2500) i")
	run(t, pool, "INSERT INTO "+schema+".bucket_memory (id, at, answer, limits, until) SELECT i::text::bytea, 0, '{}', '{}', 0 FROM generate_series(1, 2500) i")
	sql := "SELECT swept FROM " + schema + ".bucket_sweep(0, 100000, 1000)"
	for i, want := range []int64{2000, 2000, 1000, 0} {
		if got := number(t, pool, sql); got != want {
			t.Errorf("sweep %d of two tables of 2500 rows removed %d, want %d", i+1, got, want)
		}
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), sql, pgx.QueryExecModeExec); err != nil {
		t.Fatal(err)
	}
	if got := number(t, pool, sql); got != -1 {
		t.Errorf("a sweep beside another removed %d, want -1: one at a time", got)
	}
}

// TestSweep_OfMemories deletes expired memories of takes.
func TestSweep_OfMemories(t *testing.T) {
	pool := newPool(t)
	schema := migrated(t, pool)
	s := open(t, pool, pgstore.Config{Schema: schema, SweepEvery: -1, Timeout: awhile})
	l := tokens(t, 100, "1/1h")
	for i := range 10 {
		takes(t, s, of(l, 1, "k"), mete.Mode{ID: fmt.Sprint(i)})
	}
	const rows = "SELECT count(*) FROM %s.bucket_memory"
	if n := number(t, pool, fmt.Sprintf(rows, schema)); n != 10 {
		t.Fatalf("%d takes are remembered, want 10", n)
	}
	age := store.RetryHorizon.Microseconds()
	run(t, pool, "UPDATE "+schema+".bucket_memory SET at = at - $1, until = until - $1 WHERE id IN (SELECT id FROM "+schema+".bucket_memory LIMIT 4)", age)
	open(t, pool, pgstore.Config{Schema: schema, SweepEvery: often})
	until(t, func() error {
		if n := number(t, pool, fmt.Sprintf(rows, schema)); n != 6 {
			return fmt.Errorf("%d takes are remembered, want 6", n)
		}
		return nil
	})
	for i := range 10 {
		takes(t, s, of(l, 1, "k"), mete.Mode{ID: fmt.Sprint(i)})
	}
	holds(t, s, "k", l, 86*bucket.Token)
}

// TestSweep_SparesVirtualTime has a store with a clock in the last century, and another one that sweeps.
func TestSweep_SparesVirtualTime(t *testing.T) {
	pool := newPool(t)
	schema := migrated(t, pool)
	clock := storetest.NewClock()
	clock.Set(12345)
	s := open(t, pool, pgstore.Config{Schema: schema, Now: clock.Now, Timeout: awhile})
	l := tokens(t, 10, "1/1s")
	takes(t, s, of(l, 1, "plain"), mete.Mode{})
	takes(t, s, of(l, 1, "two", "with"), mete.Mode{})
	takes(t, s, of(l, 1, "named"), mete.Mode{ID: "x"})
	sweeper := open(t, pool, pgstore.Config{Schema: schema, SweepEvery: often})
	before := sweeper.Stats().Swept
	takes(t, sweeper, of(tokens(t, 10, "10/1ms"), 1, "zzz"), mete.Mode{})
	until(t, func() error {
		if sweeper.Stats().Swept == before {
			return fmt.Errorf("nothing has been swept")
		}
		return nil
	})
	for _, key := range []string{"named", "plain", "two", "with"} {
		holds(t, s, key, l, 9*bucket.Token)
	}
	takes(t, s, of(l, 1, "named"), mete.Mode{ID: "x"})
	holds(t, s, "named", l, 9*bucket.Token)
	if due := number(t, pool, "SELECT min(full_at) - $1 FROM "+schema+".bucket", serverTime(t, pool)); due < (59 * time.Minute).Microseconds() {
		t.Errorf("a bucket of virtual time goes after %v, want an hour", time.Duration(due)*time.Microsecond)
	}
}

// TestSweep_AfterClose proves that no sweep uses a connection after Close.
func TestSweep_AfterClose(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	schema := migrated(t, pool)
	s := open(t, pool, pgstore.Config{Schema: schema, SweepEvery: often, Timeout: awhile})
	takes(t, s, of(tokens(t, 10, "10/1ms"), 1, "k"), mete.Mode{})
	until(t, func() error {
		if s.Stats().Swept == 0 {
			return fmt.Errorf("nothing has been swept")
		}
		return nil
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	acquired := pool.Stat().AcquireCount()
	ctx, cancel := context.WithTimeout(t.Context(), 20*often)
	defer cancel()
	<-ctx.Done()
	if got := pool.Stat().AcquireCount(); got != acquired {
		t.Errorf("%d connections were used after Close, want none", got-acquired)
	}
}
