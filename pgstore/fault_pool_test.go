// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
)

// TestFault_PoolExhausted uses up all connections of the pool. Takes fail within their deadline, as NotSpent.
func TestFault_PoolExhausted(t *testing.T) {
	faulttest.RunParallel(t)
	p := at(t, proctest.StartPostgres(t).URL(), "", pgstore.Config{SweepEvery: -1})
	small := p.pool.Config()
	small.MaxConns = 1
	pool := poolOf(t, small)
	p.store = open(t, pool, pgstore.Config{SweepEvery: -1, Timeout: 300 * time.Millisecond})
	tr := startTraffic(t, p, plainAndOthers())
	tr.WaitAnswers(20)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []mete.Mode{{}, {Within: faulttest.Within}, {ID: "x", Within: faulttest.Within}} {
		faulttest.CheckDuration(t, fmt.Sprintf("take in mode %+v", mode), 300*time.Millisecond+2*slack, func() {
			_, err := p.take(slowCharges("k"), mode)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("take in mode %+v: %v; want that it was too late", mode, err)
			}
			if mode.Within == 0 && mete.Spent(err) != mete.NotSpent { // else it may get a connection later
				t.Errorf("take in mode %+v: %v; want that it is not spent", mode, err)
			}
		})
	}
	if err := p.store.Reset(t.Context(), []string{"k"}); mete.Spent(err) != mete.NotSpent {
		t.Errorf("reset: %v", err)
	}
	conn.Release()
	tr.WaitAnswers(20)
	tr.Stop()
	tr.CheckFailures()
	tr.CheckPrompt()
	tr.CheckBound(0)
	tr.CheckConserved()
}

// TestFault_TooManyConnections proves that a rejected connection spends nothing.
func TestFault_TooManyConnections(t *testing.T) {
	faulttest.RunParallel(t)
	const most = 8
	s := proctest.StartPostgres(t, "max_connections=8", "superuser_reserved_connections=2", "max_wal_senders=0")
	p := at(t, s.URL(), "", pgstore.Config{})
	p.must("CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA mete TO app; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA mete TO app")
	app := strings.Replace(s.URL(), "postgres@", "app@", 1)
	p.pool.Close()
	p = at(t, s.URL(), app, pgstore.Config{})
	tr := startTraffic(t, p, plainAndOthers())
	tr.WaitAnswers(20)
	p.must("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'")
	var others []*pgx.Conn
	faulttest.Eventually(t, "there are too many", func() error {
		conn, err := pgx.Connect(t.Context(), app)
		if err == nil {
			others = append(others, conn)
		}
		if _, err := p.take(slowCharges("k"), mete.Mode{}); err == nil || mete.Spent(err) != mete.NotSpent ||
			!strings.Contains(err.Error(), "SQLSTATE 53300") {
			p.must("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mete'")
			return errors.Join(errors.New("take: want SQLSTATE 53300 and not spent"), err)
		}
		return nil
	})
	if len(others) > most {
		t.Errorf("%d connections, where %d are the most", len(others), most)
	}
	tr.WaitCalls(4)
	for _, conn := range others {
		_ = conn.Close(t.Context()) // it may have been rejected
	}
	tr.WaitAnswers(20)
	tr.Stop()
	tr.CheckFailures()
	tr.CheckPrompt()
	tr.CheckBound(0)
	tr.CheckConserved()
}
