// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore/internal/schema"
)

// connect returns a pool that is closed with the test.
func connect(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func run(t testing.TB, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// list returns the rows of one column of text.
func list(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return all
}

// versions returns the applied migrations of a schema.
func versions(t testing.TB, pool *pgxpool.Pool, name string) []string {
	t.Helper()
	return list(t, pool, "SELECT format('%s_%s.sql', to_char(version, 'FM0000'), name) FROM "+schema.Quote(name)+".migration ORDER BY version")
}

// inFiles returns the names of the files.
func inFiles(t testing.TB) (names []string) {
	t.Helper()
	entries, err := os.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func migrate(t testing.TB, pool *pgxpool.Pool, name string) {
	t.Helper()
	if err := schema.Migrate(t.Context(), pool, name); err != nil {
		t.Fatalf("Migrate(%q): %v", name, err)
	}
	if got, want := versions(t, pool, name), inFiles(t); !slices.Equal(got, want) {
		t.Fatalf("Migrate(%q) applied %q, want %q", name, got, want)
	}
}

func TestFiles(t *testing.T) {
	for i, name := range inFiles(t) {
		if want := fmt.Sprintf(`^%04d_[a-z_]+\.sql$`, i+1); !regexp.MustCompile(want).MatchString(name) {
			t.Errorf("file %q: want %s", name, want)
		}
		text, err := os.ReadFile(filepath.Join("migrations", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, quote := range []string{"$mete$", "$migration$"} {
			if strings.Contains(string(text), quote) {
				t.Errorf("file %q has %s, by which it is quoted itself", name, quote)
			}
		}
	}
}

func TestMigrate(t *testing.T) {
	pool := connect(t, proctest.PostgresURL(t))
	name := proctest.PostgresSchema(t)
	migrate(t, pool, name)
	when := list(t, pool, "SELECT applied_at::text FROM "+name+".migration ORDER BY version")
	migrate(t, pool, name)
	if again := list(t, pool, "SELECT applied_at::text FROM "+name+".migration ORDER BY version"); !slices.Equal(when, again) {
		t.Errorf("applied at %q and again at %q", when, again)
	}
}

// TestMigrate_KeepsToItsSchema proves that all objects are in the schema, for any schema name.
func TestMigrate_KeepsToItsSchema(t *testing.T) {
	server := proctest.StartPostgres(t)
	pool := connect(t, server.URL())
	elsewhere := func() []string {
		return list(t, pool, `
			SELECT format('relation %s of %s', relname, n.nspname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
				WHERE nspname !~ '^pg_toast' AND NOT nspname = ANY($1)
			UNION ALL SELECT format('function %s of %s', proname, nspname) FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace
				WHERE NOT nspname = ANY($1)
			UNION ALL SELECT format('type %s of %s', typname, nspname) FROM pg_type JOIN pg_namespace n ON n.oid = typnamespace
				WHERE nspname !~ '^pg_toast' AND NOT nspname = ANY($1)
			UNION ALL SELECT 'extension ' || extname FROM pg_extension
			UNION ALL SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND NOT nspname = ANY($1)
			ORDER BY 1`, strange)
	}
	before := elsewhere()
	for _, name := range strange {
		migrate(t, pool, name)
	}
	for _, what := range elsewhere() {
		if !slices.Contains(before, what) {
			t.Errorf("%s was made elsewhere", what)
		}
	}
	if left := list(t, pool, "SELECT format('%s: %s', datname, setconfig) FROM pg_db_role_setting s LEFT JOIN pg_database d ON d.oid = setdatabase"); len(left) > 0 {
		t.Errorf("settings that outlive the session: %q", left)
	}
}

// strange are names that a schema may have.
var strange = []string{
	`We"ird schéma`, "{schema}", "a.b", "--", "/*", ";", `""`, " ", "public", "Mete", "select", strings.Repeat("x", 63),
}

func TestMigrate_BadName(t *testing.T) {
	pool := connect(t, "postgres://nobody@127.0.0.1:1/none") // which is not used
	for _, tt := range []struct{ name, want string }{
		{"", "must not be empty"},
		{strings.Repeat("x", 64), "longer than 63 bytes"},
		{strings.Repeat("é", 32), "longer than 63 bytes"},
		{"a\x00b", "without zero bytes"},
		{"a\xff", "valid UTF-8"},
		{"x'y", "must not contain"},
		{"$$", "must not contain"},
		{`a\b`, "must not contain"},
		{"%s", "must not contain"},
		{"pg_mete", "must not begin with pg_"},
	} {
		if err := schema.Migrate(t.Context(), pool, tt.name); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Migrate(%q): %v, want an error with %q", tt.name, err, tt.want)
		}
		if _, err := schema.SQL(tt.name); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("SQL(%q): %v, want an error with %q", tt.name, err, tt.want)
		}
	}
}

func TestMigrate_ManyAtOnce(t *testing.T) {
	const processes, each = 24, 10
	server := proctest.StartPostgres(t, "max_connections=300")
	pools := make([]*pgxpool.Pool, processes)
	for i := range pools {
		pools[i] = connect(t, server.URL()+"&pool_max_conns=10")
	}
	errs := make(chan error, processes*each)
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i := range processes * each {
		all.Go(func() {
			<-begin
			errs <- schema.Migrate(t.Context(), pools[i%processes], schema.Default)
		})
	}
	close(begin)
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if got, want := versions(t, pools[0], schema.Default), inFiles(t); !slices.Equal(got, want) {
		t.Errorf("applied %q, want %q", got, want)
	}
}

func TestMigrate_PgBouncer(t *testing.T) {
	server := proctest.StartPostgres(t)
	pooler := proctest.StartPgBouncer(t, server.URL(), "default_pool_size=3")
	pool := connect(t, pooler.URL()+"&pool_max_conns=10")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := schema.Migrate(t.Context(), pool, "mete"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, want := versions(t, connect(t, server.URL()), "mete"), inFiles(t); !slices.Equal(got, want) {
		t.Errorf("applied %q, want %q", got, want)
	}
	if got, err := server.Psql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"); err != nil || got != "0" {
		t.Errorf("%s advisory locks are left, %v", got, err)
	}
}

// TestMigrate_Cancel proves that Migrate ends with its context while another process holds the lock.
func TestMigrate_Cancel(t *testing.T) {
	pool := connect(t, proctest.PostgresURL(t))
	name := proctest.PostgresSchema(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	script, err := schema.SQL(name)
	if err != nil {
		t.Fatal(err)
	}
	lock := script[strings.Index(script, "SELECT pg_advisory_xact_lock"):]
	lock, _, _ = strings.Cut(lock, ";")
	if _, err := tx.Exec(t.Context(), lock); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- schema.Migrate(ctx, pool, name) }()
	await(t, pool, "SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", "1")
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("Migrate that is told to end: %v", err)
	}
}
