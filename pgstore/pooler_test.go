// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/storetest"
)

// TestPooler_Store is TestStore through a pooler in transaction mode.
func TestPooler_Store(t *testing.T) {
	t.Parallel()
	b := proctest.StartPgBouncer(t, proctest.PostgresURL(t), "default_pool_size=4")
	pool := poolTo(t, b.URL())
	schema := migrated(t, pool)
	prefix := prefixes()
	storetest.RunBriefly(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
		return open(t, pool, pgstore.Config{Schema: schema, Prefix: prefix(), Now: now, Timeout: awhile})
	})
}

// TestPooler_Crowd starts two stores concurrently behind a pooler, for any connection settings. Nothing fails or
// is lost when prepared statements turn out not to work, and nothing stays on the server.
func TestPooler_Crowd(t *testing.T) {
	b := proctest.StartPgBouncer(t, proctest.PostgresURL(t), "default_pool_size=4")
	direct := newPool(t)
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			options, err := pgxpool.ParseConfig(b.URL())
			if err != nil {
				t.Fatal(err)
			}
			options.ConnConfig.DefaultQueryExecMode = mode
			options.MaxConns = 8
			schema := proctest.PostgresSchema(t)
			var stores []*pgstore.Store
			for range 2 {
				pool, err := pgxpool.NewWithConfig(t.Context(), options)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(pool.Close)
				if err := pgstore.Migrate(t.Context(), pool, schema); err != nil {
					t.Fatal(err)
				}
				stores = append(stores, open(t, pool, pgstore.Config{Schema: schema, Timeout: awhile, SweepEvery: often}))
			}
			crowded(t, stores)
			until(t, func() error { // sweeps briefly use one
				if n := number(t, direct, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"); n > 0 {
					return fmt.Errorf("%d advisory locks are held", n)
				}
				return nil
			})
		})
	}
}

// crowded takes all tokens of a bucket from 64 goroutines, alone and with other buckets.
func crowded(t *testing.T, stores []*pgstore.Store) {
	t.Helper()
	l := tokens(t, 400, "1/1000h")
	var got atomic.Int64
	var all sync.WaitGroup
	for g := range 64 {
		s, r := stores[g%len(stores)], rand.New(testseed.PCG(uint64(g), 41))
		all.Go(func() {
			for n := range 15 {
				charges, mode := of(l, 1, "k"), mete.Mode{}
				switch r.IntN(4) {
				case 0:
					charges = of(l, 1, "k", fmt.Sprint("z", r.IntN(100)))
				case 1:
					mode.ID = fmt.Sprint(g, " ", n)
				}
				_, allowed, err := s.Take(context.Background(), nil, charges, mode)
				if err != nil {
					t.Errorf("take: %v", err)
				}
				if allowed {
					got.Add(1)
				}
			}
		})
	}
	all.Wait()
	if got.Load() != 400 {
		t.Errorf("%d were admitted by a bucket of 400", got.Load())
	}
	for _, s := range stores {
		if err := s.Reset(t.Context(), []string{"k"}); err != nil {
			t.Error(err)
		}
		if err := s.Refund(t.Context(), storetest.Refunds(of(l, 1, "k", "z1")...), ""); err != nil {
			t.Error(err)
		}
		if err := s.Ping(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := stores[0].Clear(t.Context()); err != nil {
		t.Error(err)
	}
	holds(t, stores[1], "k", l, l.Capacity())
}

// TestPooler_Tx takes within transactions, each with its own connection.
func TestPooler_Tx(t *testing.T) {
	b := proctest.StartPgBouncer(t, proctest.PostgresURL(t), "default_pool_size=2")
	pool := poolTo(t, b.URL())
	s := open(t, pool, pgstore.Config{Schema: migrated(t, pool), Timeout: awhile})
	l := tokens(t, 10, "1/1000h")
	for i := range 10 {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, allowed, err := s.TakeTx(t.Context(), tx, nil, of(l, 1, "k", "l"), mete.Mode{}); err != nil || !allowed {
			t.Errorf("allowed %v, %v", allowed, err)
		}
		if i%2 == 0 {
			err = tx.Commit(t.Context())
		} else {
			err = tx.Rollback(t.Context())
		}
		if err != nil {
			t.Error(err)
		}
	}
	holds(t, s, "k", l, 5*bucket.Token)
}
