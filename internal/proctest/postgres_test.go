// SPDX-License-Identifier: Apache-2.0

package proctest_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
)

// ask runs a statement that must return this.
func ask(t testing.TB, p *proctest.Postgres, want, sql string) {
	t.Helper()
	if got, err := p.Psql(sql); err != nil || got != want {
		t.Errorf("Psql(%q): %q, %v, want %q", sql, got, err, want)
	}
}

func TestPostgres_Psql(t *testing.T) {
	p := proctest.StartPostgres(t, "work_mem=5MB")
	ask(t, p, "1|ü\n2|", "VALUES (1, 'ü'), (2, NULL)")
	ask(t, p, "", "CREATE TABLE a (b int)")
	ask(t, p, "5MB", "SHOW work_mem")
	ask(t, p, "off", "SHOW fsync")
	ask(t, p, "UTF8|C.UTF-8", "SELECT pg_encoding_to_char(encoding), datcollate FROM pg_database WHERE datname = 'postgres'")
	if got, err := p.Psql("SELECT 1; SELECT no_such_column"); err == nil || !strings.Contains(err.Error(), `column "no_such_column" does not exist`) {
		t.Errorf("Psql of nonsense: %q, %v, want the server's error", got, err)
	}
	if _, err := os.Stat(filepath.Join(p.SocketDir, ".s.PGSQL."+p.Addr[len("127.0.0.1:"):])); err != nil {
		t.Errorf("its socket: %v", err)
	}
}

func TestPostgres_KillRestart(t *testing.T) {
	p := proctest.StartPostgres(t, "fsync=on")
	ask(t, p, "", "CREATE TABLE kept (a int); CREATE UNLOGGED TABLE lost (a int); INSERT INTO kept VALUES (1); INSERT INTO lost VALUES (1)")
	addr, url := p.Addr, p.URL()
	p.Kill()
	if got, err := p.Psql("SELECT 1"); err == nil {
		t.Errorf("after Kill: %q, want an error", got)
	}
	p.Kill() // and nothing more
	p.Restart()
	ask(t, p, "1|0", "SELECT (SELECT count(*) FROM kept), (SELECT count(*) FROM lost)")
	if p.Addr != addr || p.URL() != url {
		t.Errorf("after Restart: %s, %s; want %s, %s", p.Addr, p.URL(), addr, url)
	}
	p.Restart() // one that runs
	ask(t, p, "on", "SHOW fsync")
}

// Its children lead process groups of their own, and may be halted.
func TestPostgres_KillLeavesNobody(t *testing.T) {
	p := proctest.StartPostgres(t)
	done := make(chan error, 1)
	go func() {
		_, err := p.Psql("SELECT pg_sleep(1000)")
		done <- err
	}()
	pid := ""
	for pid == "" {
		pid, _ = p.Psql("SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(1000)'")
	}
	p.Pause()
	p.Kill()
	if err := <-done; err == nil {
		t.Error("a statement of a killed server: no error")
	}
	if state, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(state), ") Z ") {
		t.Errorf("backend %s lives on: %s", pid, state)
	}
}

func TestPostgres_Stop(t *testing.T) {
	p := proctest.StartPostgres(t)
	ask(t, p, "", "CREATE UNLOGGED TABLE a (b int); INSERT INTO a VALUES (1)")
	for _, tt := range []struct {
		mode proctest.StopMode
		left string
	}{{proctest.StopSmart, "1"}, {proctest.StopFast, "1"}, {proctest.StopImmediate, "0"}} {
		p.Stop(tt.mode)
		if err := proctest.TCP(p.Addr)(t.Context()); err == nil {
			t.Errorf("%s still listens after Stop(%d)", p.Addr, tt.mode)
		}
		p.Restart()
		ask(t, p, tt.left, "SELECT count(*) FROM a")
	}
}

func TestPostgres_PauseResume(t *testing.T) {
	p := proctest.StartPostgres(t)
	p.Pause()
	began := time.Now()
	done := make(chan string, 1)
	go func() {
		answer, err := p.Psql("SELECT 'awake'")
		if err != nil {
			answer = err.Error()
		}
		done <- answer
	}()
	select {
	case got := <-done:
		t.Errorf("a paused server answers %q after %v", got, time.Since(began))
	case <-time.After(100 * time.Millisecond):
	}
	p.Resume()
	if got := <-done; got != "awake" {
		t.Errorf("after Resume: %q, want the answer", got)
	}
}

func TestPostgres_CleanupEndsPausedOne(t *testing.T) {
	var p *proctest.Postgres
	t.Run("inner", func(t *testing.T) {
		p = proctest.StartPostgres(t)
		p.Pause()
	})
	select {
	case <-p.Process.Done():
	default:
		t.Errorf("server %d lives on after its test", p.Process.Pid())
	}
	if _, err := os.Stat(p.DataDir); err == nil {
		t.Errorf("%s is left", p.DataDir)
	}
}

func TestStartPostgresIn(t *testing.T) {
	dir, err := os.MkdirTemp("", "proctest-data-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	t.Run("inner", func(t *testing.T) {
		p := proctest.StartPostgresIn(t, dir)
		ask(t, p, "1", "SELECT 1")
		p.Restart()
	})
	if _, err := os.Stat(filepath.Join(dir, "PG_VERSION")); err != nil {
		t.Errorf("its files: %v", err)
	}
}

func TestPostgresURL(t *testing.T) {
	t.Setenv(proctest.PostgresVar, "postgresql://u:secret@db.test/d")
	if got, want := proctest.PostgresURL(t), "postgresql://u:secret@db.test/d"; got != want {
		t.Errorf("PostgresURL: %q, want %q", got, want)
	}
	for _, bad := range []string{"localhost:5432", "postgres:secret", "http://u:secret@localhost", "postgres://u:secret@%zz:1"} {
		t.Setenv(proctest.PostgresVar, bad)
		failed := record(t, func(t testing.TB) { proctest.PostgresURL(t) })
		if !strings.Contains(failed, "want postgres://user@host:port/database") || strings.Contains(failed, "secret") {
			t.Errorf("PostgresURL with %q: test log %q, want the form and no secret", bad, failed)
		}
	}
	t.Setenv(proctest.PostgresVar, "")
	var first string
	for _, name := range []string{"one", "another"} {
		t.Run(name, func(t *testing.T) {
			got := proctest.PostgresURL(t)
			if first == "" {
				first = got
			}
			if got != first {
				t.Errorf("PostgresURL: %q, want that of the test before, %q", got, first)
			}
		})
	}
}

// The server that tests share ends with their process, however that ends.
func TestPostgresURL_EndsWithTheProcess(t *testing.T) {
	t.Setenv(proctest.PostgresVar, "")
	p := proctest.Start(t, program(t, "postgres", ""))
	<-p.Done()
	u, err := url.Parse(strings.TrimSpace(p.Output()))
	if err != nil || u.Port() == "" {
		t.Fatalf("the process wrote %q, want a URL", p.Output())
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	err = proctest.Poll(ctx, func(ctx context.Context) error {
		if proctest.TCP(u.Host)(ctx) == nil {
			return errors.New("it listens still")
		}
		return nil
	})
	if err != nil {
		t.Errorf("server at %s: %v", u.Host, err)
	}
}

func TestPostgresSchema(t *testing.T) {
	t.Setenv(proctest.PostgresVar, "")
	p := proctest.StartPostgres(t)
	t.Setenv(proctest.PostgresVar, p.URL())
	schemas := "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^test_'"
	t.Run("inner", func(t *testing.T) {
		one, another := proctest.PostgresSchema(t), proctest.PostgresSchema(t)
		ask(t, p, "", "CREATE SCHEMA "+one+"; CREATE TABLE "+one+".a (b int); CREATE SCHEMA "+another)
		ask(t, p, "2", schemas)
	})
	ask(t, p, "0", schemas)
}

func TestStartPostgresTLS(t *testing.T) {
	p, cert := proctest.StartPostgresTLS(t)
	url := strings.TrimSuffix(p.URL(), "disable") + "verify-full&sslrootcert=" + cert
	if got, err := psqlAt(t, url, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"); err != nil || got != "t" {
		t.Errorf("over TLS: %q, %v", got, err)
	}
}

// A proxy passes on PostgreSQL as it does Redis.
func TestProxy_Postgres(t *testing.T) {
	p := proctest.StartPostgres(t)
	proxy := proctest.StartProxy(t, p.Addr)
	url := strings.Replace(p.URL(), p.Addr, proxy.Addr, 1)
	if got, err := psqlAt(t, url, "SELECT 1"); err != nil || got != "1" {
		t.Errorf("by way of the proxy: %q, %v", got, err)
	}
	proxy.Refuse(true)
	if got, err := psqlAt(t, url, "SELECT 1"); err == nil {
		t.Errorf("while it refuses: %q, want an error", got)
	}
}
