// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pgbouncerConfig has the address of the server, the port of the pooler, and more settings. All clients
// become the user of the server URL.
const pgbouncerConfig = `[databases]
* = %s

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 1000
%s
`

// A PgBouncer is a connection pooler for a test, in front of a PostgreSQL server. Only the test's goroutine
// may call its methods.
type PgBouncer struct {
	Addr    string   // host:port, which never changes
	Process *Process // Restart replaces it

	t      testing.TB
	server *url.URL
	config string // path of the configuration file
}

// StartPgBouncer starts a pooler in front of the server that a URL names, and waits until it listens. The server may
// start later. The pooler assigns connections per transaction: settings and prepared statements of a client are lost
// after each. The settings are lines such as "default_pool_size=2". The test's cleanup ends the pooler.
func StartPgBouncer(t testing.TB, postgresURL string, settings ...string) *PgBouncer {
	t.Helper()
	server, err := url.Parse(postgresURL)
	if err != nil || server.Port() == "" || server.User.Username() == "" {
		t.Fatalf("pgbouncer: want the URL of a server, with a user and a port") // the URL may hold a password
	}
	home, err := postgresHome()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := makeSubdirectory(home)
	if err != nil {
		t.Fatal(err)
	}
	removeAfter(t, dir)
	b := &PgBouncer{Addr: FreeAddr(t), t: t, server: server, config: filepath.Join(dir, "pgbouncer.ini")}
	if err := os.WriteFile(b.config, []byte(b.settingsFile(settings)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := chown(b.config); err != nil {
		t.Fatal(err)
	}
	b.launch()
	return b
}

func (b *PgBouncer) settingsFile(settings []string) string {
	server := fmt.Sprintf("host=%s port=%s user=%s", b.server.Hostname(), b.server.Port(), b.server.User.Username())
	if password, ok := b.server.User.Password(); ok {
		server += " password='" + strings.ReplaceAll(password, "'", "''") + "'"
	}
	return fmt.Sprintf(pgbouncerConfig, server, portOf(b.Addr), strings.Join(settings, "\n"))
}

func (b *PgBouncer) launch() {
	b.t.Helper()
	cmd := exec.Command(Find(b.t, "pgbouncer", "pgbouncer"), b.config)
	cmd.Dir = filepath.Dir(b.config)
	demote(cmd)
	b.Process = Start(b.t, cmd)
	b.t.Cleanup(b.Process.Kill) // it may be paused, and has no state to save
	b.Process.WaitReady(startTimeout, func(ctx context.Context) error { return TCP(b.Addr)(ctx) })
}

// URL returns the URL of the server's database through the pooler.
func (b *PgBouncer) URL() string {
	u := *b.server
	u.Host = b.Addr
	u.User = url.User(b.server.User.Username())
	u.RawQuery = "sslmode=disable"
	return u.String()
}

// Kill ends the pooler as a crash would.
func (b *PgBouncer) Kill() { b.Process.Kill() }

// Restart starts the pooler again, and kills it first if it runs.
func (b *PgBouncer) Restart() {
	b.t.Helper()
	b.Kill()
	b.launch()
}
