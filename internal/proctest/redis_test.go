// SPDX-License-Identifier: Apache-2.0

package proctest_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
)

// do sends a command that must be answered so.
func do(t testing.TB, r *proctest.Redis, want string, args ...string) {
	t.Helper()
	got, err := r.Do(args...)
	if err != nil || got != want {
		t.Errorf("Do(%q): %q, %v, want %q", args, got, err, want)
	}
}

func TestRedis_Do(t *testing.T) {
	r := proctest.StartRedis(t)
	do(t, r, "OK", "SET", "key", "a\r\nvalue")
	do(t, r, "a\r\nvalue", "GET", "key")
	do(t, r, "", "GET", "no-key")
	do(t, r, "1", "DBSIZE")
	do(t, r, "1\n2\n\n3", "EVAL", "return {1, {'2', false}, 3}", "0")
	do(t, r, "", "EVAL", "return {}", "0")
	if reply, err := r.Do("GET"); err == nil || !strings.Contains(err.Error(), "wrong number of arguments") {
		t.Errorf("Do(GET): %q, %v, want the server's error", reply, err)
	}
	do(t, r, "OK", "ACL", "SETUSER", "reader", "on", ">secret", "~*", "+get")
}

func TestRedis_KillRestart(t *testing.T) {
	r := proctest.StartRedis(t)
	do(t, r, "OK", "SET", "key", "value")
	addr := r.Addr
	r.Kill()
	if reply, err := r.Do("PING"); err == nil {
		t.Errorf("PING after Kill: %q, want an error", reply)
	}
	r.Kill() // and nothing more
	r.Restart()
	do(t, r, "", "GET", "key")
	if r.Addr != addr {
		t.Errorf("address after Restart: %s, want %s", r.Addr, addr)
	}
	r.Restart() // one that runs
	do(t, r, "PONG", "PING")
}

func TestRedis_RestartKeepsWhatItsArgumentsKeep(t *testing.T) {
	r := proctest.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	do(t, r, "OK", "SET", "key", "value")
	r.Kill()
	r.Restart()
	do(t, r, "value", "GET", "key")
}

func TestRedis_PauseResume(t *testing.T) {
	r := proctest.StartRedis(t)
	r.Pause()
	conn, err := net.Dial("tcp", r.Addr)
	if err != nil {
		t.Fatalf("connect to a paused server: %v", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, len("+PONG\r\n"))
	conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := conn.Read(reply); err == nil {
		t.Errorf("a paused server answers %q", reply[:n])
	}
	r.Resume()
	conn.SetReadDeadline(time.Now().Add(timeout))
	if n, err := conn.Read(reply); err != nil || string(reply[:n]) != "+PONG\r\n" {
		t.Errorf("after Resume: %q, %v, want the answer", reply[:n], err)
	}
}

func TestRedis_CleanupEndsPausedOne(t *testing.T) {
	var r *proctest.Redis
	var began time.Time
	t.Run("inner", func(t *testing.T) {
		r = proctest.StartRedis(t)
		r.Pause()
		began = time.Now()
	})
	if took := time.Since(began); took >= 5*time.Second { // as long as others have to end by themselves
		t.Errorf("cleanup took %v, want no wait for a paused process", took)
	}
	select {
	case <-r.Process.Done():
	default:
		t.Errorf("server %d lives on after its test", r.Process.Pid())
	}
}

func TestRedisAddr(t *testing.T) {
	t.Setenv(proctest.RedisVar, "redis://redis.test:6380")
	if got, want := proctest.RedisAddr(t), "redis.test:6380"; got != want {
		t.Errorf("RedisAddr: %q, want %q", got, want)
	}
	for _, bad := range []string{"localhost:6379", "redis://localhost", "http://localhost:1", "redis://%zz:1"} {
		t.Setenv(proctest.RedisVar, bad)
		failed := record(t, func(t testing.TB) { proctest.RedisAddr(t) })
		if !strings.Contains(failed, "want redis://host:port") {
			t.Errorf("RedisAddr with %q: test log %q, want the form", bad, failed)
		}
	}
	t.Setenv(proctest.RedisVar, "")
	if err := proctest.TCP(proctest.RedisAddr(t))(t.Context()); err != nil {
		t.Errorf("the server started where none is named: %v", err)
	}
}
