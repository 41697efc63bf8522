// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/internal/testkit"
)

// echoing is an upstream that upgrades to a protocol in which it repeats every line.
// It sends over ended when a client's connection has come to an end.
func echoing(t *testing.T) (url string, ended chan struct{}) {
	t.Helper()
	ended = make(chan struct{}, 10)
	u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		io.Copy(conn, rw)
		ended <- struct{}{}
	}))
	t.Cleanup(u.Close)
	return u.URL, ended
}

// A socket is the client's side of an upgraded connection.
type socket struct {
	net.Conn
	from *bufio.Reader
}

func openSocket(t *testing.T, s *server.Server) socket {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	from := bufio.NewReader(conn)
	if resp, err := http.ReadResponse(from, nil); err != nil || resp.StatusCode != 101 {
		t.Fatalf("got %v (%v), want 101", resp, err)
	}
	return socket{conn, from}
}

// echoes fails the test unless what the client says comes back.
func (s socket) echoes(t *testing.T) {
	t.Helper()
	io.WriteString(s, "hello\n")
	if line, err := s.from.ReadString('\n'); line != "hello\n" || err != nil {
		t.Fatalf("got %q (%v), want what was said", line, err)
	}
}

// wantEnd fails the test unless the connection ends.
func (s socket) wantEnd(t *testing.T) {
	t.Helper()
	_, err := s.from.ReadByte()
	if timeout, ok := err.(net.Error); err == nil || ok && timeout.Timeout() {
		t.Errorf("got error %v, want the end", err)
	}
}

// An upgraded connection is kept while the server drains, and the server ends with it.
func TestRun_WaitsForUpgradedConnections(t *testing.T) {
	t.Parallel()
	c := testConfig()
	url, ended := echoing(t)
	c.Upstream, c.Timeouts.Drain = mustURL(url), 10*patience
	s := start(t, c)
	conn := openSocket(t, s.server)
	s.stop()
	testkit.Until(t, "no more connections are taken", func() bool {
		conn, err := net.Dial("tcp", s.server.Addr().String())
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	for range 3 {
		conn.echoes(t)
	}
	conn.Close()
	<-ended
	if err := s.wait(); err != nil { // long before the drain is over
		t.Errorf("Run: %v", err)
	}
	if s.log.Count("cut off") != 0 {
		t.Error("the log says that something was cut off")
	}
}

// What outlives the drain is cut off, on both sides, and the log says how many.
func TestRun_CutsOffUpgradedConnections(t *testing.T) {
	t.Parallel()
	c := testConfig()
	url, ended := echoing(t)
	c.Upstream, c.Timeouts.Drain = mustURL(url), 50*time.Millisecond
	s := start(t, c)
	conns := []socket{openSocket(t, s.server), openSocket(t, s.server)}
	s.stop()
	if err := s.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
	for _, conn := range conns {
		conn.wantEnd(t)
		<-ended
	}
	if got := s.log.Count("upgraded connections closed at shutdown"); got != 1 || s.log.Count("connections=2") != 1 {
		t.Errorf("%d lines in the log, want one of 2 connections", got)
	}
	if s.log.Count("requests aborted at shutdown") != 0 {
		t.Error("the log says that requests cut off: there were none")
	}
}

// Requests and upgraded connections share the time of the drain.
func TestRun_OneDrainForAll(t *testing.T) {
	t.Parallel()
	held := newHeldUpstream(t)
	url, ended := echoing(t)
	c := testConfig()
	c.Upstreams = []config.Upstream{{Name: "sockets", URLs: urls(url)}, {Name: "slow", URLs: urls(held.URL)}}
	c.Routes = []config.Route{{Upstream: "sockets"}, {Path: "/slow", Upstream: "slow"}}
	c.Timeouts.Drain = 50 * time.Millisecond
	s := start(t, c)
	conn := openSocket(t, s.server)
	slow := ask(s.main + "/slow")
	<-held.arrived
	s.stop()
	if err := s.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
	conn.wantEnd(t)
	<-ended
	if got := <-slow; got.err == nil {
		t.Errorf("a request that outlives the drain: %+v, want a broken connection", got)
	}
	for _, what := range []string{"requests aborted at shutdown", "upgraded connections closed at shutdown"} {
		if s.log.Count(what) != 1 {
			t.Errorf("the log does not say that %s", what)
		}
	}
}

// timeouts.upgraded closes what is silent, and 0 nothing.
func TestUpgraded_Timeout(t *testing.T) {
	t.Parallel()
	unbounded, bounded := testConfig(), testConfig()
	url, ended := echoing(t)
	unbounded.Upstream, bounded.Upstream = mustURL(url), mustURL(url)
	unbounded.Timeouts.Upgraded, bounded.Timeouts.Upgraded = 0, 200*time.Millisecond
	older := openSocket(t, start(t, unbounded).server)
	conn := openSocket(t, start(t, bounded).server)
	conn.wantEnd(t)
	<-ended
	older.echoes(t) // it has been silent for longer than the one that was closed
	older.Close()
}

// The server keeps no connection to its upstream when it has ended.
func TestRun_ClosesIdleUpstreamConnections(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{}, 10)
	u := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	u.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	u.Start()
	defer u.Close()
	c := testConfig()
	c.Upstream = mustURL(u.URL)
	s := start(t, c)
	if status, _ := get(t, s.main); status != 200 {
		t.Errorf("got %d", status)
	}
	s.stop()
	if err := s.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
	select {
	case <-closed:
	case <-time.After(patience):
		t.Error("the connection to the upstream is still open")
	}
}
