// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
)

// startPostgres returns a server with logged tables, which survive a crash, or with unlogged ones.
func startPostgres(t testing.TB, durable bool) *world {
	w := &world{name: "postgres", keys: allKeys, slotKey: "s", versions: true, slots: true, holds: true}
	table := "mete.bucket"
	if durable {
		w.name, table = "postgres, durable", "mete.bucket_durable"
	}
	server := proctest.StartPostgres(t)
	pool, err := pgxpool.New(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	err = pgstore.Migrate(t.Context(), pool, "")
	pool.Close()
	if err != nil {
		t.Fatal(err)
	}
	var proxies []*proctest.Proxy
	for range nodes {
		proxies = append(proxies, proctest.StartProxy(t, server.Addr))
	}
	w.open = func(t testing.TB, timeout time.Duration) (all []store.Store) {
		for _, p := range proxies {
			all = append(all, openPostgres(t, strings.Replace(server.URL(), server.Addr, p.Addr, 1), durable, timeout))
		}
		return all
	}
	w.stores = w.open(t, callTimeout)
	w.faults = append(proxyFaults(proxies),
		fault{"no fault", quiet, func(*run) {}},
		fault{"SIGKILL", breaking, func(r *run) {
			crash := func() {
				server.Kill()
				r.awaitFailures()
				server.Restart()
			}
			if durable {
				crash()
			} else {
				r.event(wipe, 0, crash)
			}
		}},
		fault{"SIGSTOP", breaking, func(r *run) {
			server.Pause()
			r.awaitFailures()
			server.Resume()
		}},
		fault{"connections terminated", breaking, func(r *run) { signalBackends(r, server, "pg_terminate_backend") }},
		fault{"statements canceled", breaking, func(r *run) { signalBackends(r, server, "pg_cancel_backend") }},
		fault{"rows locked", harmless, func(r *run) {
			end := transaction(r, server, "SELECT * FROM "+table+" WHERE key LIKE '"+r.prefix+"%' AND key NOT LIKE '%a' FOR UPDATE")
			r.await(clients / 2)
			end()
		}},
		fault{"table locked", breaking, func(r *run) {
			end := transaction(r, server, "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
			r.awaitFailures()
			end()
		}},
	)
	return w
}

func openPostgres(t testing.TB, url string, durable bool, timeout time.Duration) *pgstore.Store {
	t.Helper()
	options, config, err := pgstore.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	// On a loaded machine, the first connection can take longer than the timeout of the store.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var pool *pgxpool.Pool
	err = proctest.Poll(ctx, func(ctx context.Context) (err error) {
		pool, err = pgstore.Dial(ctx, options)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	config.Timeout, config.Durable = timeout, durable
	s, err := pgstore.New(pool, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the server may be down by now
	return s
}

// signalBackends calls a function of PostgreSQL for each connection of the stores.
func signalBackends(r *run, server *proctest.Postgres, function string) {
	for range 4 {
		if _, err := server.Psql("SELECT count(" + function + "(pid)) FROM pg_stat_activity WHERE application_name = 'mete'"); err != nil {
			r.Fatal(err)
		}
		r.await(clients / 4)
	}
}

// transaction runs a statement in a transaction that lasts until end, and holds its locks.
func transaction(r *run, server *proctest.Postgres, sql string) (end func()) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.URL())
	if err == nil {
		_, err = conn.Exec(ctx, "BEGIN; "+sql, pgx.QueryExecModeSimpleProtocol)
	}
	if err != nil {
		r.Fatal(err)
	}
	return func() {
		if err := conn.Close(ctx); err != nil {
			r.Error(err)
		}
	}
}
