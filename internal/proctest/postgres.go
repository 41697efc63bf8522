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

// psqlTimeout is the time limit of one call of [Postgres.Psql].
const psqlTimeout = 30 * time.Second

// A Postgres is a PostgreSQL server for a test, on a loopback port, with the superuser postgres and no
// password. [Postgres.Psql] may be called concurrently, even while the server is paused or dead. Only the
// test's goroutine may call the other methods.
type Postgres struct {
	Addr      string // host:port, which never changes
	SocketDir string // the directory of its Unix socket, for host= in a URL
	DataDir   string
	Process   *Process // the postmaster; Restart replaces it

	t        testing.TB
	dir      string
	settings []string
}

// StartPostgres starts an empty server and waits until it answers. The settings, such as "fsync=on" or
// "max_connections=300", override the defaults. By default the server does not wait for the disk: it survives
// its own crash, but not one of the machine. If the test runs as root, the server runs as the user postgres
// or `nobody`. The server ends with the test, or with the test's process at the latest.
func StartPostgres(t testing.TB, settings ...string) *Postgres {
	t.Helper()
	return startPostgres(t, "", settings)
}

// StartPostgresIn is [StartPostgres] with its files in an empty directory, such as one on a small disk. Every
// user must be able to enter the parent directories. The server becomes the owner of the directory, and its
// files stay there.
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
	removeAfter(t, dir)
	p.launch()
	p.waitReady()
	return p
}

// postgresCommand returns the command of a server in a directory that newPostgresDir made.
func postgresCommand(dir, addr string, settings []string) (*exec.Cmd, error) {
	program, err := findPostgres("postgres", "postgresql")
	if err != nil {
		return nil, err
	}
	args := []string{"-D", filepath.Join(dir, dataName)}
	for _, setting := range append([]string{
		"listen_addresses=127.0.0.1", "port=" + portOf(addr), "unix_socket_directories=" + dir,
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
	p.Process.WaitReady(startTimeout, func(ctx context.Context) error { return checkAnswer(ctx, p.Addr, p.URL()) })
}

// checkAnswer returns an error unless a server executes statements.
func checkAnswer(ctx context.Context, addr, url string) error {
	if err := TCP(addr)(ctx); err != nil {
		return err // faster than psql
	}
	_, err := psql(ctx, url, "SELECT 1")
	return err
}

// URL returns the URL of the database postgres with the superuser.
func (p *Postgres) URL() string { return postgresURL(p.Addr) }

func postgresURL(addr string) string {
	return "postgres://postgres@" + addr + "/postgres?sslmode=disable"
}

// Psql runs statements as the superuser in one transaction on a new connection. It returns a line per row,
// with columns separated by |. Errors have the message of the server. The time limit is 30 s.
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
	cmd := exec.CommandContext(ctx, program, "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url)
	cmd.Stdin = strings.NewReader(sql) // an argument has at most 128 KiB
	cmd.Env = append(os.Environ(), "PGCONNECT_TIMEOUT=5", "PGCLIENTENCODING=UTF8", "LC_ALL=C")
	cmd.Dir = os.TempDir()
	text, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("psql: %s: %w", strings.TrimSpace(string(exit.Stderr)), errors.Join(ctx.Err(), err))
	}
	return strings.TrimSuffix(string(text), "\n"), err
}
