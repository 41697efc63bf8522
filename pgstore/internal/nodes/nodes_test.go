// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/internal/presence"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore/internal/nodes"
	"github.com/metehq/mete/pgstore/internal/schema"
)

// beat is short to keep the tests short. A node misses three of them only if it is gone, even on a slow machine.
const beat = 100 * time.Millisecond

// dial connects to a server, until the end of the test.
func dial(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// crowd returns a schema for nodes, and a pool to inspect it.
func crowd(t *testing.T) (string, *pgxpool.Pool) {
	t.Helper()
	name, pool := proctest.PostgresSchema(t), dial(t, proctest.PostgresURL(t))
	if err := schema.Migrate(t.Context(), pool, name); err != nil {
		t.Fatal(err)
	}
	return name, pool
}

func join(t *testing.T, url, name, prefix, id string) *presence.Presence {
	t.Helper()
	p, err := nodes.Join(t.Context(), dial(t, url), nodes.Config{Schema: name, Prefix: prefix, ID: id, Every: beat})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func leave(t *testing.T, nodes ...*presence.Presence) {
	t.Helper()
	for _, p := range nodes {
		if err := p.Leave(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// await waits until all nodes count this many.
func await(t *testing.T, want int, nodes ...*presence.Presence) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := proctest.Poll(ctx, func(context.Context) error {
		for i, p := range nodes {
			if got := p.Nodes(); got != want {
				return fmt.Errorf("node %d counts %d nodes, want %d", i, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// through returns a URL with a proxy's address.
func through(t *testing.T, raw string) (string, *proctest.Proxy) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	proxy := proctest.StartProxy(t, u.Host)
	u.Host = proxy.Addr
	return u.String(), proxy
}

func TestJoin(t *testing.T) {
	server := proctest.PostgresURL(t)
	name, pool := crowd(t)
	proxied, proxy := through(t, server)
	a, b := join(t, server, name, "p:\x00\xff", "a"), join(t, server, name, "p:\x00\xff", "b")
	other := join(t, server, name, "q:", "c")
	dying := join(t, proxied, name, "p:\x00\xff", "d")
	await(t, 3, a, b, dying)
	await(t, 1, other)

	proxy.Blackhole(true) // it stops without leaving
	await(t, 2, a, b)
	if got := dying.Nodes(); got != 3 {
		t.Errorf("who is cut off counts %d nodes, want 3 as before", got)
	}
	proxy.Blackhole(false)
	await(t, 3, a, b, dying)

	leave(t, dying, b)
	await(t, 1, a)
	leave(t, a, other)
	var left int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+name+".node").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows are left, %v", left, err)
	}
}

// TestJoin_Crash proves that a crash empties the table, and that nodes keep their count and later count each
// other again.
func TestJoin_Crash(t *testing.T) {
	server := proctest.StartPostgres(t)
	const name = schema.Default
	if err := schema.Migrate(t.Context(), dial(t, server.URL()), name); err != nil {
		t.Fatal(err)
	}
	a, b := join(t, server.URL(), name, "", "a"), join(t, server.URL(), name, "", "b")
	await(t, 2, a, b)
	server.Kill()
	if a.Nodes() != 2 || b.Nodes() != 2 {
		t.Errorf("without a server: %d and %d nodes, want 2", a.Nodes(), b.Nodes())
	}
	server.Restart()
	c := join(t, server.URL(), name, "", "c")
	await(t, 3, a, b, c)
	leave(t, a, b, c)
}

// TestJoin_Removes deletes rows that no node counts: rows of dead nodes, rows with a future time, and old rows of
// any prefix.
func TestJoin_Removes(t *testing.T) {
	name, pool := crowd(t)
	if _, err := pool.Exec(t.Context(), `INSERT INTO `+name+`.node VALUES
		('p', 'gone', now() - interval '1 minute'), ('p', 'ahead', now() + interval '1 hour'),
		('q', 'gone', now() - interval '1 minute'), ('q', 'long gone', now() - interval '2 days')`); err != nil {
		t.Fatal(err)
	}
	p := join(t, proctest.PostgresURL(t), name, "p", "a")
	await(t, 1, p)
	rows, _ := pool.Query(t.Context(), `SELECT convert_from(prefix, 'UTF8') || ' ' || id FROM `+name+`.node ORDER BY 1`)
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if want := []string{"p a", "q gone"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %q, %v; want %q", left, err, want)
	}
	leave(t, p)
}

// TestJoin_WaitsForNoOther proves that a node never waits for another node's row, because that could deadlock.
func TestJoin_WaitsForNoOther(t *testing.T) {
	name, pool := crowd(t)
	if _, err := pool.Exec(t.Context(), "INSERT INTO "+name+".node VALUES ('', 'back', now() - interval '1 hour')"); err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "UPDATE "+name+".node SET seen = now()"); err != nil {
		t.Fatal(err)
	}
	leave(t, join(t, proctest.PostgresURL(t), name, "", "a"))
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := 0
	for range 20 { // a busy machine may take longer than nodes count
		if _, err := pool.Exec(t.Context(), "UPDATE "+name+".node SET seen = now()"); err != nil {
			t.Fatal(err)
		}
		b := join(t, proctest.PostgresURL(t), name, "", "b")
		got = b.Nodes()
		leave(t, b)
		if got == 2 {
			break
		}
	}
	if got != 2 {
		t.Errorf("%d nodes, want 2 with the one that is back", got)
	}
}

func TestJoin_Fails(t *testing.T) {
	pool, config := dial(t, proctest.PostgresURL(t)), nodes.Config{Schema: proctest.PostgresSchema(t), ID: "a"}
	wrong := config
	wrong.Every = time.Microsecond
	if _, err := nodes.Join(t.Context(), pool, wrong); err == nil {
		t.Error("an interval of 1µs: no error")
	}
	if _, err := nodes.Join(t.Context(), pool, config); err == nil {
		t.Error("without the table: no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := nodes.Join(ctx, pool, config); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of ctx: %v, want %v", err, context.Canceled)
	}
}
