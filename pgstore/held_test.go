// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete"
	"github.com/metehq/mete/pgstore"
)

// kept is a timeout that a take exceeds.
const kept = 300 * time.Millisecond

// counted waits until the store counts the buckets as held.
func counted(t *testing.T, s *pgstore.Store, keys ...string) {
	t.Helper()
	until(t, func() error {
		for _, k := range keys {
			if !s.IsHeld(k) {
				return fmt.Errorf("the store does not count %q as held", k)
			}
		}
		return nil
	})
}

// TestHeld_ThenBusy locks a bucket that was held by one transaction after another, without a pause: waiting takes
// still get their turn.
func TestHeld_ThenBusy(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	takes(t, d.store, of(d.limit, 1, "k"), mete.Mode{})
	s := open(t, poolNamed(t, "kept"), pgstore.Config{Schema: d.schema, Timeout: awhile, SweepEvery: -1})
	long := d.begin(pgx.TxOptions{})
	d.take(long, 1, mete.Mode{}, "k")

	answered := make(chan error, 1)
	go func() {
		_, _, err := s.Take(context.Background(), nil, of(d.limit, 1, "k"), mete.Mode{})
		answered <- err
	}()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var others sync.WaitGroup
	for range 3 { // two of them wait
		others.Go(func() {
			for ctx.Err() == nil {
				if _, err := d.pool.Exec(context.Background(), "BEGIN; SELECT FROM "+d.schema+".bucket FOR UPDATE; SELECT pg_sleep(0.01); COMMIT", pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Error(err)
				}
			}
		})
	}
	counted(t, s, "k")
	d.rollback(long)
	select {
	case err := <-answered:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(awhile / 2):
		t.Error("a bucket that others take in turns is never free")
	}
	end()
	others.Wait()
	d.has(0, 8)
}

// TestHeld_NewOneBeside holds two buckets, one of them without a row. When the other is released, takes from it
// do not wait for the first.
func TestHeld_NewOneBeside(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	takes(t, d.store, of(d.limit, 1, "there"), mete.Mode{})
	s := open(t, poolNamed(t, "kept"), pgstore.Config{Schema: d.schema, Timeout: awhile, SweepEvery: -1})
	there, fresh := d.begin(pgx.TxOptions{}), d.begin(pgx.TxOptions{})
	d.take(there, 1, mete.Mode{}, "there")
	d.take(fresh, 1, mete.Mode{}, "fresh")
	wait := func(key string) *sync.WaitGroup {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if _, allowed, err := s.Take(context.Background(), nil, of(d.limit, 1, key), mete.Mode{}); err != nil || !allowed {
					t.Errorf("take of %q: allowed %v, %v", key, allowed, err)
				}
			})
		}
		return &all
	}
	ofThere, ofFresh := wait("there"), wait("fresh")
	counted(t, s, "there", "fresh")
	d.rollback(there)
	answered := make(chan struct{})
	go func() { ofThere.Wait(); close(answered) }()
	select {
	case <-answered:
	case <-time.After(awhile / 2):
		t.Error("a bucket is free, and those who wait for it are not answered")
	}
	d.rollback(fresh)
	ofFresh.Wait()
	ofThere.Wait()
	holds(t, d.store, "there", d.limit, 5000)
	holds(t, d.store, "fresh", d.limit, 6000)
}

// TestHeld_GivesUp takes from a bucket that stays locked: the take fails in time, as NotSpent.
func TestHeld_GivesUp(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := open(t, poolNamed(t, d.schema), pgstore.Config{Schema: d.schema, Timeout: kept, SweepEvery: -1})
	takes(t, d.store, of(d.limit, 1, "k"), mete.Mode{})
	tx := d.begin(pgx.TxOptions{})
	d.take(tx, 1, mete.Mode{}, "k")
	for _, mode := range []mete.Mode{{}, {}, {Within: kept}, {MaxWait: time.Second, Within: kept}, {ID: "x"}} {
		answered := make(chan error, 1)
		go func() {
			_, _, err := s.Take(context.Background(), nil, of(d.limit, 1, "k"), mode)
			answered <- err
		}()
		select {
		case err := <-answered:
			if err == nil {
				t.Errorf("%+v: answered while it was locked", mode)
			}
		case <-time.After(awhile / 2):
			t.Fatalf("%+v: still waits", mode)
		}
	}
	until(t, func() error { // on a slow machine, abandoned takes may still be in flight
		if n := number(t, d.pool, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND state <> 'idle'", d.schema); n > 0 {
			return fmt.Errorf("%d calls are on their way", n)
		}
		return nil
	})
	d.rollback(tx)
	d.has(0, 9)
}

// TestTake_LeavesNoDeadline uses a connection for something else, after the deadline of a take on it.
func TestTake_LeavesNoDeadline(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	options := d.pool.Config()
	options.MaxConns = 1
	pool := poolOf(t, options)
	s := open(t, pool, pgstore.Config{Schema: d.schema, Timeout: kept, SweepEvery: -1})
	until(t, func() error { // eventually, on a slow machine
		_, _, err := s.Take(context.Background(), nil, of(d.limit, 1, "k"), mete.Mode{})
		return err
	})
	made := pool.Stat().NewConnsCount()
	run(t, pool, fmt.Sprintf("SELECT pg_sleep(%f)", (kept*3/2).Seconds()))
	if n := pool.Stat().NewConnsCount(); n != made {
		t.Errorf("%d connections were made after the take, want that its own is used again", n-made)
	}
}
