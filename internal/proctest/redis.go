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

// RedisVar is the environment variable that names a server for [RedisAddr], as
// redis://host:port.
const RedisVar = "METE_TEST_REDIS"

// startTimeout is how long a server may take until it answers.
const startTimeout = time.Minute

// A Redis is a server that runs beside a test, on a port of the loopback
// interface. [Redis.Do] may be used concurrently, also while the server is
// paused or dead; the other methods are the test's own goroutine's.
type Redis struct {
	Addr    string   // host:port, the same for its whole life
	Process *Process // Restart puts another in its place

	t    testing.TB
	dir  string
	args []string
	tls  *tls.Config // nil: without TLS
}

// RedisAddr returns the host:port of a server for a test that needs no more
// than one: the server that METE_TEST_REDIS names, whose contents belong to
// others too, or one started for the test.
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

// StartRedis starts a server that keeps nothing on disk, with more arguments or
// others, such as "--appendonly", "yes", and waits until it answers. The test's
// cleanup kills it.
func StartRedis(t testing.TB, args ...string) *Redis {
	t.Helper()
	addr := FreeAddr(t)
	return startRedis(t, addr, nil, slices.Concat([]string{"--port", port(addr)}, args))
}

// startRedis starts a server whose args make it listen on addr.
func startRedis(t testing.TB, addr string, config *tls.Config, args []string) *Redis {
	t.Helper()
	r := launchRedis(t, addr, config, slices.Concat([]string{
		"--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--repl-diskless-sync-delay", "0", // a replica is there at once, not in 5 s
	}, args))
	r.waitReady()
	return r
}

// launchRedis is startRedis without what only a server of data knows, and
// without waiting.
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
	r.t.Cleanup(p.Kill) // there is nothing to save, and it may be paused
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

// Do sends one command as the default user, over a connection of its own, and
// returns the reply as text: the elements of an array are a line each, nil is
// empty. An error reply is an error with its text. It gives up after 20 s.
func (r *Redis) Do(args ...string) (string, error) {
	return command(r.Addr, r.tls, args...)
}

// must is Do of a command that cannot be refused, or the test fails.
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

// Pause halts the server: it takes connections and requests, and answers none
// of them before Resume.
func (r *Redis) Pause() { r.t.Helper(); r.Process.Pause() }

// Resume lets a paused server go on, with all that was sent to it meanwhile.
func (r *Redis) Resume() { r.t.Helper(); r.Process.Resume() }

// Restart starts the server again, having killed it if need be, at the same
// address and in the same directory, and waits until it answers. It is empty
// unless its arguments made it keep something.
func (r *Redis) Restart() {
	r.t.Helper()
	r.Kill()
	r.launch()
	r.waitReady()
}

func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}
