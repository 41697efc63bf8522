// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// psqlTimeout is how long one call of [Postgres.Psql] may take.
const psqlTimeout = 30 * time.Second

// A Postgres is a PostgreSQL server that runs beside a test, on a port of the
// loopback interface, with a superuser postgres whom it trusts.
// [Postgres.Psql] may be used concurrently, also while the server is paused or
// dead; the other methods are the test's own goroutine's.
type Postgres struct {
	Addr      string   // host:port, the same for its whole life
	SocketDir string   // where its unix socket is, for host= in a URL
	DataDir   string   // its files
	Process   *Process // the postmaster; Restart puts another in its place

	t        testing.TB
	dir      string
	settings []string
}

// StartPostgres starts an empty server, with more settings or others, such as
// "fsync=on" or "max_connections=300", and waits until it answers. Unless it is
// told otherwise it does not wait for the disk, so it is fast, and survives a
// crash of its own, if not of the machine. It runs as the user postgres, or
// nobody, where the test is root's. The test's cleanup ends it; should the test's
// process end without one, the server still does.
func StartPostgres(t testing.TB, settings ...string) *Postgres {
	t.Helper()
	return startPostgres(t, "", settings)
}

// StartPostgresIn is [StartPostgres] with its files in a directory, which must be
// empty, and in places that every user may enter. So they can be on a disk that
// is small. The directory becomes the server's; the files are left in it.
func StartPostgresIn(t testing.TB, dataDir string, settings ...string) *Postgres {
	t.Helper()
	return startPostgres(t, dataDir, settings)
}

func startPostgres(t testing.TB, dataDir string, settings []string) *Postgres {
	t.Helper()
	dir, err := newPostgresDir(dataDir)
	if err != nil {
		t.Fatal(err)
	}
	p := &Postgres{Addr: FreeAddr(t), SocketDir: dir, t: t, dir: dir, settings: settings}
	p.DataDir = filepath.Join(dir, dataName)
	removeWith(t, dir)
	p.launch()
	p.waitReady()
	return p
}

// postgresCommand is a server's, in a directory of newPostgresDir.
func postgresCommand(dir, addr string, settings []string) (*exec.Cmd, error) {
	program, err := findPostgres("postgres", "postgresql")
	if err != nil {
		return nil, err
	}
	args := []string{"-D", filepath.Join(dir, dataName)}
	for _, setting := range append([]string{
		"listen_addresses=127.0.0.1", "port=" + port(addr), "unix_socket_directories=" + dir,
		"dynamic_shared_memory_type=mmap", // in the directory, and removed with it
		"fsync=off",
	}, settings...) {
		args = append(args, "-c", setting)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	demote(cmd)
	return cmd, nil
}

func (p *Postgres) launch() {
	p.t.Helper()
	cmd, err := postgresCommand(p.dir, p.Addr, p.settings)
	if err != nil {
		p.t.Fatal(err)
	}
	p.Process = Start(p.t, cmd)
	p.t.Cleanup(p.end)
}

func (p *Postgres) waitReady() {
	p.t.Helper()
	p.Process.WaitReady(startTimeout, func(ctx context.Context) error { return answers(ctx, p.Addr, p.URL()) })
}

// answers says whether a server takes statements.
func answers(ctx context.Context, addr, url string) error {
	if err := TCP(addr)(ctx); err != nil {
		return err // sooner than psql says it
	}
	_, err := psql(ctx, url, "SELECT 1")
	return err
}

// URL names the server's database postgres, and its superuser of that name.
func (p *Postgres) URL() string { return postgresURL(p.Addr) }

func postgresURL(addr string) string {
	return "postgres://postgres@" + addr + "/postgres?sslmode=disable"
}

// Psql runs statements as the superuser, over a connection of its own and in one
// transaction, and returns what they return as text: a line for each row, its
// columns separated by |. What the server refuses is an error with its text. It
// gives up after 30 s.
func (p *Postgres) Psql(sql string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), psqlTimeout)
	defer cancel()
	return psql(ctx, p.URL(), sql)
}

func psql(ctx context.Context, url, sql string) (string, error) {
	program, err := findPostgres("psql", "postgresql-client")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql)
	cmd.Env = append(os.Environ(), "PGCONNECT_TIMEOUT=5", "PGCLIENTENCODING=UTF8", "LC_ALL=C")
	cmd.Dir = os.TempDir()
	text, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("psql: %s: %w", strings.TrimSpace(string(exit.Stderr)), errors.Join(ctx.Err(), err))
	}
	return strings.TrimSuffix(string(text), "\n"), err
}
