// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/store"
)

// awhile is the timeout for expected events, even on a slow machine.
const awhile = time.Minute

// lasts returns the duration of an endurance test: short, or METE_TEST_LONG, such as 10m.
func lasts(t *testing.T, moment time.Duration) time.Duration {
	t.Helper()
	const variable = "METE_TEST_LONG"
	text := os.Getenv(variable)
	if text == "" {
		return moment
	}
	long, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return long
}

// compiled returns the limit of a spec.
func compiled(t testing.TB, spec bucket.Spec) bucket.Limit {
	t.Helper()
	l, _, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// tokens returns a token bucket of this capacity with a rate such as "5/10s".
func tokens(t testing.TB, capacity bucket.Tokens, rate string) bucket.Limit {
	t.Helper()
	r, err := bucket.ParseRate(rate)
	if err != nil {
		t.Fatal(err)
	}
	return compiled(t, bucket.Spec{Capacity: capacity * bucket.Token, Rate: r})
}

// of returns charges of this many tokens from each of keys, which are sorted.
func of(l bucket.Limit, cost bucket.Tokens, keys ...string) []store.Charge {
	charges := make([]store.Charge, len(keys))
	for i, k := range keys {
		charges[i] = store.Charge{Key: k, Limit: l, Cost: cost * bucket.Token}
	}
	return charges
}

// takes is a Take that must not fail.
func takes(t testing.TB, s mete.Store, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool) {
	t.Helper()
	snaps, allowed, err := s.Take(context.Background(), nil, charges, mode)
	if err != nil || len(snaps) != len(charges) {
		t.Fatalf("take %.300v: %d snapshots, %v", charges, len(snaps), err)
	}
	return snaps, allowed
}

// holds asserts a bucket's tokens, in thousandths.
func holds(t testing.TB, s mete.Store, key string, l bucket.Limit, want bucket.Tokens) {
	t.Helper()
	snaps, _ := takes(t, s, of(l, 0, key), mete.Mode{DryRun: true})
	if got := snaps[0].Remaining(); got != want {
		t.Errorf("bucket %.40q holds %v tokens, want %v", key, got, want)
	}
}

// poolNamed connects to the shared server under an application name of its own.
func poolNamed(t testing.TB, name string) *pgxpool.Pool {
	t.Helper()
	options, err := pgxpool.ParseConfig(proctest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	options.ConnConfig.RuntimeParams["application_name"] = name
	options.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// gone closes a pool and waits until its connections have left the server, so that the statistics are complete.
func gone(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	name := pool.Config().ConnConfig.RuntimeParams["application_name"]
	pool.Close()
	other := newPool(t)
	until(t, func() error {
		if n := number(t, other, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", name); n > 0 {
			return fmt.Errorf("%d connections of %s are still there", n, name)
		}
		return nil
	})
}

// until waits for f to return nil.
func until(t testing.TB, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), awhile)
	defer cancel()
	if err := proctest.Poll(ctx, func(context.Context) error { return f() }); err != nil {
		t.Fatal(err)
	}
}

// number returns the result of a query for one number.
func number(t testing.TB, pool *pgxpool.Pool, sql string, arguments ...any) (n int64) {
	t.Helper()
	if err := pool.QueryRow(context.Background(), sql, arguments...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// lines returns the result of a query for one column of text.
func lines(t testing.TB, pool *pgxpool.Pool, sql string, arguments ...any) []string {
	t.Helper()
	rows, err := pool.Query(context.Background(), sql, arguments...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return all
}

func run(t testing.TB, pool *pgxpool.Pool, sql string, arguments ...any) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), sql, arguments...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// notSpent asserts a NotSpent error of this kind.
func notSpent(t testing.TB, err, kind error) {
	t.Helper()
	if err == nil || mete.Spent(err) != mete.NotSpent {
		t.Errorf("%v: want an error, and nothing spent", err)
	}
	if kind != nil && !errors.Is(err, kind) {
		t.Errorf("%v: want %v", err, kind)
	}
}
