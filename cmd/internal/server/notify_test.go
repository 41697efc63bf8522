// SPDX-License-Identifier: Apache-2.0

//go:build unix

package server_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/testkit"
)

// A manager listens in place of systemd.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
}

func newManager(t *testing.T) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "mete") // t.TempDir may be longer than a socket's name can be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", socket)
	return &manager{t, conn}
}

// await returns the next message that contains line, and the lines of earlier messages.
func (m *manager) await(line string) (before []string) {
	m.t.Helper()
	m.conn.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 1<<10)
	for {
		n, err := m.conn.Read(buf)
		if err != nil {
			m.t.Fatalf("the server did not tell %s, but %q: %v", line, before, err)
		}
		told := string(buf[:n])
		for l := range strings.Lines(told) {
			if strings.TrimSpace(l) == line {
				return before
			}
		}
		before = append(before, told)
	}
}

func TestNotify(t *testing.T) {
	m := newManager(t)
	c := testConfig()
	c.Timeouts.Notice = 50 * time.Millisecond
	s := start(t, c)
	if before := m.await("READY=1"); len(before) > 0 {
		t.Errorf("told before READY=1: %q", before)
	}
	if got := s.take("192.0.2.1"); got != 200 {
		t.Errorf("a take once it is ready: status %d", got)
	}
	s.stop()
	if before := m.await("STOPPING=1"); len(before) > 0 {
		t.Errorf("told before STOPPING=1: %q", before)
	}
}

func TestNotify_Watchdog(t *testing.T) {
	m := newManager(t)
	t.Setenv("WATCHDOG_USEC", "20000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	c := testConfig()
	c.Timeouts.Notice = time.Second // many beats, also where the machine is busy
	s := start(t, c)
	m.await("READY=1")
	for range 3 {
		m.await("WATCHDOG=1")
	}
	s.stop()
	m.await("STOPPING=1")
	m.await("WATCHDOG=1") // while it ends
}

// TestNotify_Elsewhere has a watchdog that waits for another process, or for
// nonsense, and a manager that is gone.
func TestNotify_Elsewhere(t *testing.T) {
	for _, usec := range []string{"20000", "-1", "soon", "99999999999999999999", "0"} {
		m := newManager(t)
		t.Setenv("WATCHDOG_USEC", usec)
		t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
		if usec == "20000" {
			t.Setenv("WATCHDOG_PID", "1")
		}
		s := start(t, testConfig())
		m.await("READY=1")
		s.stop()
		if before := m.await("STOPPING=1"); len(before) > 0 {
			t.Errorf("WATCHDOG_USEC=%s: told %q, want no beat", usec, before)
		}
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	s := start(t, testConfig())
	if status := s.take("192.0.2.1"); status != 200 {
		t.Errorf("a server whose manager is gone answers %d, want 200", status)
	}
	testkit.Until(t, "the log tells that the manager is gone", func() bool { return s.log.Count("service manager not notified") == 1 })
}
