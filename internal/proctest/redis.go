// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// RedisVar is the environment variable with the server of [RedisAddr], such as redis://host:port.
const RedisVar = "METE_TEST_REDIS"

const startTimeout = time.Minute

// A Redis is a server for a test, on a loopback port. [Redis.Do] may be called concurrently, even while the
// server is paused or dead. Only the test's goroutine may call the other methods.
type Redis struct {
	Addr    string   // host:port, which never changes
	Process *Process // Restart replaces it

	t    testing.TB
	dir  string
	args []string
	tls  *tls.Config // nil without TLS
}

// RedisAddr returns the host:port of one server. It is the server in METE_TEST_REDIS, which other tests use
// too, or a new one.
func RedisAddr(t testing.TB) string {
	t.Helper()
	named := os.Getenv(RedisVar)
	if named == "" {
		return StartRedis(t).Addr
	}
	u, err := url.Parse(named)
	if err != nil || u.Scheme != "redis" || u.Port() == "" {
		t.Fatalf("%s=%q: want redis://host:port", RedisVar, named)
	}
	return u.Host
}

// StartRedis starts a server without persistence and waits until it answers. The args, such as
// "--appendonly", "yes", override the defaults. The test's cleanup kills the server.
func StartRedis(t testing.TB, args ...string) *Redis {
	t.Helper()
	addr := FreeAddr(t)
	return startRedis(t, addr, nil, slices.Concat([]string{"--port", portOf(addr)}, args))
}

// startRedis starts a server, which must listen at addr because of args.
func startRedis(t testing.TB, addr string, config *tls.Config, args []string) *Redis {
	t.Helper()
	r := launchRedis(t, addr, config, slices.Concat([]string{
		"--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--repl-diskless-sync-delay", "0", // a replica syncs at once instead of after 5 s
	}, args))
	r.waitReady()
	return r
}

// launchRedis starts a Redis or a sentinel and does not wait for it.
func launchRedis(t testing.TB, addr string, config *tls.Config, args []string) *Redis {
	t.Helper()
	r := &Redis{Addr: addr, t: t, dir: t.TempDir(), args: args, tls: config}
	r.launch()
	return r
}

func (r *Redis) launch() {
	r.t.Helper()
	cmd := exec.Command(Find(r.t, "redis-server", "redis-server"), r.args...)
	cmd.Dir = r.dir
	p := Start(r.t, cmd)
	r.t.Cleanup(p.Kill) // it has no state to save, and may be paused
	r.Process = p
}

func (r *Redis) waitReady() {
	r.t.Helper()
	r.Process.WaitReady(startTimeout, func(context.Context) error {
		reply, err := r.Do("PING")
		if err == nil && reply != "PONG" {
			err = fmt.Errorf("PING: got %q", reply)
		}
		return err
	})
}

// Do sends one command as the default user on a new connection, and returns the reply as text. Arrays have
// one element per line, and nil is empty. Error replies become errors. The time limit is 20 s.
func (r *Redis) Do(args ...string) (string, error) {
	return runCommand(r.Addr, r.tls, args...)
}

// must is Do for a command that cannot fail.
func (r *Redis) must(args ...string) string {
	r.t.Helper()
	reply, err := r.Do(args...)
	if err != nil {
		r.t.Fatalf("%q to %s: %v", args, r.Addr, err)
	}
	return reply
}

// Kill ends the server as a crash would.
func (r *Redis) Kill() { r.Process.Kill() }

// Pause stops the server: it still gets connections and requests, and answers after Resume.
func (r *Redis) Pause() { r.t.Helper(); r.Process.Pause() }

// Resume continues a paused server, which then executes the requests that it got.
func (r *Redis) Resume() { r.t.Helper(); r.Process.Resume() }

// Restart starts the server again at the same address in the same directory, and waits until it answers. It
// kills the server first if it runs. The server is empty unless its arguments enable persistence.
func (r *Redis) Restart() {
	r.t.Helper()
	r.Kill()
	r.launch()
	r.waitReady()
}

func portOf(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}
