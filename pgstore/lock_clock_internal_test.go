// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/store"
)

// TestTake_ClockAfterTheLock makes each path of a take wait for a lock. The take is decided by the time after the
// wait, with or without a row.
func TestTake_ClockAfterTheLock(t *testing.T) {
	slow, err := bucket.NewLimit(10*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	quick, err := bucket.NewLimit(10*bucket.Token, bucket.Rate{Tokens: 10 * bucket.Token, Per: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for way, name := range []string{"alone", "one", "many", "general"} {
		for _, tt := range []struct {
			name  string
			limit bucket.Limit
			lock  string // of the blocking transaction, which is rolled back
		}{
			{"no row", slow, "INSERT INTO %s (key, lim, spent, as_of, full_at) VALUES ('p:k', '', 0, 0, 0)"},
			{"row", quick, "SELECT FROM %s WHERE key = 'p:k' FOR UPDATE"},
		} {
			t.Run(name+", "+tt.name, func(t *testing.T) {
				a := newAgreement(t, 0)
				a.store.config.Now = nil
				if tt.name == "row" { // the bucket is empty when the wait starts
					a.write("k", bucket.Row{{Limit: tt.limit, State: bucket.State{
						Spent: 10_000 * tt.limit.Unit(), AsOf: bucket.Instant(a.serverTime()), Unit: tt.limit.Unit()}}})
				}
				tx, err := a.pool.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback(context.Background())
				if _, err := tx.Exec(t.Context(), fmt.Sprintf(tt.lock, a.table())); err != nil {
					t.Fatal(err)
				}
				b := newBatch(a.store)
				b.Reset()
				b.Add(a.store.newAsk([]store.Charge{{Key: "k", Limit: tt.limit, Cost: 10 * bucket.Token}}, mete.Mode{}))
				a.choose(b, way)
				b.lockTimeout = "60000"
				conn, err := a.pool.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Release()
				done := make(chan error, 1)
				go func() { done <- b.runOn(t.Context(), conn.Conn()) }()
				a.waits(conn.Conn())
				seen := a.serverTime()
				released := a.passes(seen + 40_000)
				if err := tx.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				x := b.asks[0]
				if x.Err != nil || !x.allowed {
					t.Fatalf("allowed %v, %v: want what has refilled during the wait", x.allowed, x.Err)
				}
				rows, _ := a.read("k")
				if got := rows["k"]; len(got) != 1 || got[0].State.AsOf < bucket.Instant(released) {
					t.Errorf("left %+v: want it as of the end of the wait, %d", got, released)
				}
				if _, at := x.snaps[0].Verdict(); at < bucket.Instant(seen) {
					t.Errorf("decided at %d, %d µs before the end of the wait", at, bucket.Instant(released)-at)
				}
			})
		}
	}
}

// choose makes b use one of the paths of takeBySomeWay.
func (a *agreement) choose(b *batch, way int) {
	a.store.denying.Store(false)
	a.store.unprepared.Store(way != 0)
	switch way {
	case 2:
		b.Add(a.store.newAsk([]store.Charge{{Key: "other", Limit: a.limits[1], Cost: 1}}, mete.Mode{}))
	case 3:
		b.ungroup()
	}
}

// waits waits until a connection waits for a lock.
func (a *agreement) waits(conn *pgx.Conn) {
	a.Helper()
	err := proctest.Poll(a.Context(), func(ctx context.Context) error {
		var n int
		err := a.pool.QueryRow(ctx, "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = $1", conn.PgConn().PID()).Scan(&n)
		if err == nil && n == 0 {
			err = fmt.Errorf("it does not wait")
		}
		return err
	})
	if err != nil {
		a.Fatal(err)
	}
}

// passes waits until the server's clock is past an instant, and returns it.
func (a *agreement) passes(at int64) (now int64) {
	a.Helper()
	err := proctest.Poll(a.Context(), func(context.Context) error {
		if now = a.serverTime(); now <= at {
			return fmt.Errorf("it is %d", now)
		}
		return nil
	})
	if err != nil {
		a.Fatal(err)
	}
	return now
}
