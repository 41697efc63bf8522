// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
)

// spend takes all tokens of a bucket and checks that it is empty.
func spend(t *testing.T, s mete.Store, key string) {
	t.Helper()
	l, err := bucket.NewLimit(3*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	c := []store.Charge{{Key: key, Limit: l, Cost: 3 * bucket.Token}}
	for _, want := range []bool{true, false} {
		if _, allowed, err := s.Take(t.Context(), nil, c, mete.Mode{}); err != nil || allowed != want {
			t.Fatalf("take of %s: allowed %v, %v; want %v", key, allowed, err, want)
		}
	}
}

// openURL opens a store and closes it at the end of the test.
func openURL(t *testing.T, raw string) *pgstore.Node {
	t.Helper()
	n, err := pgstore.Open(t.Context(), raw)
	if err != nil {
		t.Fatalf("Open(%q): %v", raw, err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return n
}

// with returns a URL with further parameters.
func with(url, parameters string) string {
	if strings.Contains(url, "?") {
		return url + "&" + parameters
	}
	return url + "?" + parameters
}

// count returns the number of rows of a table.
func count(t *testing.T, schema, table string) (n int) {
	t.Helper()
	sql := "SELECT count(*) FROM " + pgx.Identifier{schema, table}.Sanitize()
	if err := newPool(t).QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Error(err)
	}
	return n
}

func TestOpen(t *testing.T) {
	schema := proctest.PostgresSchema(t)
	url := with(proctest.PostgresURL(t), "prefix=p:&timeout=2s&schema="+schema)
	n := openURL(t, url)
	spend(t, n, "rule:k")
	if got := n.Nodes(); got != 1 {
		t.Errorf("Nodes() = %d, want 1", got)
	}
	durable := openURL(t, with(url, "durable=true")) // finds an existing schema
	spend(t, durable, "rule:k")
	spend(t, durable, "rule:other")
	for table, want := range map[string]int{"bucket": 1, "bucket_durable": 2, "node": 2} {
		if got := count(t, schema, table); got != want {
			t.Errorf("%d rows in %s, want %d", got, table, want)
		}
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if got := count(t, schema, "node"); got != 1 {
		t.Errorf("%d nodes once one of two has left, want 1", got)
	}
	if err := n.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

func TestOpen_Socket(t *testing.T) {
	t.Parallel()
	server := proctest.StartPostgres(t)
	_, port, _ := strings.Cut(server.Addr, ":")
	spend(t, openURL(t, "postgres:///postgres?user=postgres&host="+server.SocketDir+"&port="+port), "rule:k")
}

func TestOpen_PgBouncer(t *testing.T) {
	t.Parallel()
	pooler := proctest.StartPgBouncer(t, proctest.StartPostgres(t).URL(), "default_pool_size=2")
	a, b := openURL(t, pooler.URL()), openURL(t, pooler.URL())
	spend(t, a, "rule:a")
	spend(t, b, "rule:b")
}

func TestOpen_TLS(t *testing.T) {
	t.Parallel()
	server, cert := proctest.StartPostgresTLS(t)
	url := strings.TrimSuffix(server.URL(), "disable")
	spend(t, openURL(t, url+"verify-full&sslrootcert="+cert), "rule:k")
	for _, mode := range []string{"verify-full", "verify-ca"} {
		_, err := pgstore.Open(t.Context(), url+mode)
		if err == nil || !strings.Contains(err.Error(), "certificate") || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("sslmode=%s without the certificate: %v, want it refused for good", mode, err)
		}
	}
}

// TestOpen_Hosts proves that the first host that accepts writes is used.
func TestOpen_Hosts(t *testing.T) {
	t.Parallel()
	primary := proctest.StartPostgres(t)
	standby := standbyServer(t)
	hosts := "postgres://postgres@" + proctest.FreeAddr(t) + "," + standby.Addr + "," + primary.Addr + "/postgres?sslmode=disable"
	spend(t, openURL(t, hosts), "rule:k")
	if got, err := primary.Psql("SELECT count(*) FROM mete.bucket"); err != nil || got != "1" {
		t.Errorf("rows at the primary: %s, %v", got, err)
	}
}

// standbyServer starts a standby without a reachable primary.
func standbyServer(t *testing.T) *proctest.Postgres {
	t.Helper()
	p := proctest.StartPostgres(t)
	p.Stop(proctest.StopFast)
	if err := os.WriteFile(filepath.Join(p.DataDir, "standby.signal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.Restart()
	return p
}

// TestOpen_Fails proves that errors distinguish an unavailable server from a rejection, and contain no password.
func TestOpen_Fails(t *testing.T) {
	t.Parallel()
	server := proctest.StartPostgres(t)
	setUp := `CREATE ROLE u LOGIN PASSWORD 'right'; CREATE ROLE crowded LOGIN CONNECTION LIMIT 0; CREATE ROLE reader LOGIN;
		CREATE DATABASE closed; REVOKE CONNECT ON DATABASE closed FROM PUBLIC;
		CREATE DATABASE aged`
	for statement := range strings.SplitSeq(setUp, ";") {
		if text, err := server.Psql(statement); err != nil {
			t.Fatal(text, err)
		}
	}
	age(t, poolTo(t, strings.Replace(server.URL(), "/postgres?", "/aged?", 1)))
	hba := "local all all trust\nhost all u all scram-sha-256\nhost all denied all reject\nhost all all all trust\n"
	if err := os.WriteFile(filepath.Join(server.DataDir, "pg_hba.conf"), []byte(hba), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Psql("SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	standby := standbyServer(t)
	silent := proctest.StartProxy(t, server.Addr)
	silent.Blackhole(true)
	cut := proctest.StartProxy(t, server.Addr)
	cut.CutBeforeReply(1000)
	gone := proctest.StartPostgres(t)
	pooler := proctest.StartPgBouncer(t, gone.URL(), "server_connect_timeout=1", "query_wait_timeout=1")
	gone.Kill()
	at := func(user, addr, rest string) string {
		timeout := "10" // a slow machine has it
		if addr == silent.Addr {
			timeout = "1"
		}
		return "postgres://" + user + "@" + addr + "/" + rest + "connect_timeout=" + timeout
	}
	for _, tt := range []struct {
		raw  string
		want string
		down bool
	}{
		{at("u:secret", proctest.FreeAddr(t), "d?"), "refused", true},
		{at("u:secret", proctest.FreeAddr(t)+","+proctest.FreeAddr(t), "d?"), "refused", true},
		{at("u:secret", silent.Addr, "d?sslmode=disable&"), "timeout", true},
		{at("u:secret", cut.Addr, "d?"), "", true},
		{"postgres:///d?host=/does/not/exist", "no such file", true},
		{at("u", server.Addr, "postgres?"), "password authentication failed", false},
		{at("u:secret", server.Addr, "postgres?"), "password authentication failed", false},
		{at("denied:secret", server.Addr, "postgres?"), "rejects connection", false},
		{at("nobody:secret", server.Addr, "postgres?"), `role "nobody" does not exist`, false},
		{at("u:right", server.Addr, "none?"), `database "none" does not exist`, false},
		{at("u:right", server.Addr, "closed?"), "permission denied for database", false},
		{at("u:right", server.Addr, "postgres?"), `permission denied for database postgres`, false}, // to create the schema
		{at("u:right", server.Addr, "postgres?"), `CREATE SCHEMA "mete" AUTHORIZATION "u"`, false},
		{at("crowded", server.Addr, "postgres?"), "too many connections for role", true},
		{at("postgres", server.Addr, "aged?"), "the server is PostgreSQL 130011: use 14 or later", false},
		{at("postgres", server.Addr, "postgres?sslmode=require&"), "TLS", false},
		{at("postgres", standby.Addr, "postgres?"), "the server is a standby", false},
		{at("postgres", standby.Addr, "postgres?target_session_attrs=any&"), "the server is a standby", false},
		{pooler.URL(), "", true},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), awhile)
		_, err := pgstore.Open(ctx, tt.raw)
		cancel()
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%q): %v, want an error in one line with %q and no secret", tt.raw, err, tt.want)
		}
		if errors.Is(err, store.ErrUnavailable) != tt.down {
			t.Errorf("Open(%q): %v: unavailable %v, want %v", tt.raw, err, !tt.down, tt.down)
		}
	}
}

// TestOpen_Paused proves that Open gives up on a paused server.
func TestOpen_Paused(t *testing.T) {
	t.Parallel()
	server := proctest.StartPostgres(t)
	pooler := proctest.StartPgBouncer(t, server.URL())
	server.Pause()
	for _, url := range []string{server.URL(), pooler.URL()} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		if _, err := pgstore.Open(ctx, url); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Open(%q): %v, want %v", url, err, store.ErrUnavailable)
		}
		cancel()
	}
	server.Resume()
}

// TestDeriveKey proves that all nodes of a schema and prefix get the same secret, even if they create it
// concurrently.
func TestDeriveKey(t *testing.T) {
	server := proctest.StartPostgres(t)
	a, b := openURL(t, server.URL()), openURL(t, server.URL())
	other := openURL(t, server.URL()+"&prefix=x")
	type derived struct {
		key [32]byte
		err error
	}
	const each = 10
	keys := make(chan derived, 2*each)
	for _, n := range []*pgstore.Node{a, b} {
		for range each {
			go func() {
				key, err := n.DeriveKey(t.Context(), "hashes")
				keys <- derived{key, err}
			}()
		}
	}
	first := <-keys
	for range 2*each - 1 {
		if k := <-keys; k != first || k.err != nil {
			t.Errorf("keys %x and %x, %v", first.key, k.key, k.err)
		}
	}
	for _, n := range []*pgstore.Node{a, other} {
		for _, purpose := range []string{"hashes", "other"} {
			key, err := n.DeriveKey(t.Context(), purpose)
			if err != nil || (key == first.key) != (n == a && purpose == "hashes") {
				t.Errorf("for %q: %x, %v; the first was %x", purpose, key, err, first.key)
			}
		}
	}
	server.Restart() // after a crash
	spend(t, openURL(t, server.URL()), "rule:k")
	again := openURL(t, server.URL())
	if key, err := again.DeriveKey(t.Context(), "hashes"); err != nil || key != first.key {
		t.Errorf("after a crash: %x, %v; want %x as before", key, err, first.key)
	}
	server.Kill()
	if _, err := again.DeriveKey(t.Context(), "hashes"); err == nil {
		t.Error("without a server: no error")
	}
}

// TestNode_CloseWhileTheServerHangs proves that Close is fast; pgx alone would wait 15 s per connection.
func TestNode_CloseWhileTheServerHangs(t *testing.T) {
	t.Parallel()
	server := proctest.StartPostgres(t)
	node, err := pgstore.Open(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	server.Pause()
	defer server.Resume()
	start := time.Now()
	if err := node.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("Close took %v", took)
	}
}

// age makes a database report an older server version.
func age(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, statement := range []string{
		"SET allow_system_table_mods = on",
		"ALTER FUNCTION pg_catalog.current_setting(text) RENAME TO own_setting",
		"CREATE FUNCTION pg_catalog.current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT '130011' $$",
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
