// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/proxy"
)

// silence is the idle timeout in these tests. It is longer than an upgrade on a busy machine.
const silence = time.Second

// reading reads until the end, and then tells ended.
func reading(ended chan<- error) func(net.Conn, *bufio.ReadWriter) {
	return func(conn net.Conn, rw *bufio.ReadWriter) {
		_, err := io.Copy(io.Discard, rw)
		ended <- err
	}
}

// wantCut reports whether both sides of an upgraded connection end.
func wantCut(t *testing.T, conn lineConn, upstream <-chan error) {
	t.Helper()
	if line, err := conn.ReadString('\n'); err == nil {
		t.Errorf("the client got %q, want the end", line)
	} else if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Error("the client's connection is still open")
	}
	receive(t, upstream, "end at the upstream")
}

// Idle connections are closed on both sides without an error, also after traffic.
func TestUpgradeTimeout_Idle(t *testing.T) {
	ended := make(chan error, 1)
	var errs counter
	front := start(t, serve(t, switching(t, reading(ended))), 10, proxy.Config{UpgradeTimeout: silence, OnError: errs.onError})
	for _, words := range []string{"", "hello"} {
		conn, _ := upgrade(t, front)
		io.WriteString(conn, words)
		wantCut(t, conn, ended)
	}
	if n := errs.n.Load(); n != 0 {
		t.Errorf("OnError was called %d times", n)
	}
}

// A half-closed connection is closed when the other direction is idle.
func TestUpgradeTimeout_HalfClosed(t *testing.T) {
	ended := make(chan error, 1)
	front := start(t, serve(t, switching(t, func(conn net.Conn, rw *bufio.ReadWriter) {
		conn.(*net.TCPConn).CloseWrite()
		reading(ended)(conn, rw)
	})), 1, proxy.Config{UpgradeTimeout: silence})
	conn, _ := upgrade(t, front)
	if _, err := conn.ReadByte(); err != io.EOF {
		t.Errorf("got error %v, want the end of one direction", err)
	}
	receive(t, ended, "end of the other direction")
}

// A connection is also closed if one side does not read.
func TestUpgradeTimeout_UnreadData(t *testing.T) {
	written := make(chan error, 1)
	front := start(t, serve(t, switching(t, func(conn net.Conn, rw *bufio.ReadWriter) {
		_, err := io.Copy(conn, zeros{})
		written <- err
	})), 1, proxy.Config{UpgradeTimeout: silence})
	upgrade(t, front)
	if err := receive(t, written, "end at the upstream"); err == nil {
		t.Error("the upstream could write without end")
	}
}

// Traffic in one direction, be the other one closed or not, keeps a connection for many
// times the timeout.
func TestUpgradeTimeout_OneDirection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pause, length = silence * 9 / 10, 5 * silence
		talk := func(to io.Writer) error {
			for begin := time.Now(); time.Since(begin) < length; time.Sleep(pause) {
				if _, err := io.WriteString(to, "."); err != nil {
					return err
				}
			}
			_, err := io.WriteString(to, "end\n")
			return err
		}
		n := newNetwork(t)
		heard, talked := make(chan string, 1), make(chan error, 1)
		defer n.serve("talks:80", switching(t, func(conn net.Conn, rw *bufio.ReadWriter) { talk(conn) }))()
		defer n.serve("listens:80", switching(t, func(conn net.Conn, rw *bufio.ReadWriter) {
			line, _ := rw.ReadString('\n')
			heard <- line
		}))()
		through := func(server string) lineConn {
			p := n.gate(proxy.Config{UpgradeTimeout: silence}, proxy.Health{}, server)
			t.Cleanup(func() { p.Close() })
			t.Cleanup(n.serve("front of "+server, p.ServeHTTP))
			conn, _ := upgradeOn(t, n.connect("front of "+server).Conn)
			return conn
		}
		fromClient := through("listens:80")
		go func() { talked <- talk(fromClient) }()
		fromServer, halfClosed := through("talks:80"), through("talks:80")
		closeWrite(t, halfClosed.Conn)
		var reading sync.WaitGroup // at once: the connections have no buffers
		for name, conn := range map[string]lineConn{"to the client": fromServer, "half-closed": halfClosed} {
			reading.Go(func() {
				if line, err := conn.ReadString('\n'); err != nil {
					t.Errorf("%s: cut after %d bytes: %v", name, len(line), err)
				}
			})
		}
		reading.Wait()
		if err := receive(t, talked, "end of the client's words"); err != nil {
			t.Errorf("from the client: %v", err)
		}
		if line := receive(t, heard, "what the client said"); line == "" || line[len(line)-1] != '\n' {
			t.Errorf("to the server: cut after %d bytes", len(line))
		}
	})
}

// Drain waits for open connections and allows no new ones.
func TestDrain(t *testing.T) {
	ended := make(chan error, 1)
	p := newProxy(t, serve(t, switching(t, reading(ended))), middleware(t, 100_000, httplimit.Config{}), proxy.Config{UpgradeTimeout: -1})
	front := httptest.NewServer(p)
	defer front.Close()
	conn, _ := upgrade(t, front.URL)
	cut := make(chan int, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() { cut <- p.Drain(ctx) }()
	for { // until Drain has begun
		other, resp := upgrade(t, front.URL)
		other.Close()
		receive(t, ended, "end of the other one")
		if resp.StatusCode == 503 {
			if resp.Header.Get("Retry-After") == "" || resp.Header.Get("X-RateLimit-Reason") != "" {
				t.Errorf("an upgrade while it drains: got header %v", resp.Header)
			}
			break
		}
	}
	select {
	case n := <-cut:
		t.Fatalf("Drain returned %d while a connection is open", n)
	default:
	}
	conn.Close()
	if n := receive(t, cut, "end of Drain"); n != 0 {
		t.Errorf("%d were cut off, want 0", n)
	}
	if n := p.Drain(ctx); n != 0 {
		t.Errorf("with none open: %d were cut off, want 0", n)
	}
}

// Drain closes the remaining connections when its time is over, once.
func TestDrain_CutsOff(t *testing.T) {
	const open = 3
	ended := make(chan error, open)
	p := newProxy(t, serve(t, switching(t, reading(ended))), middleware(t, open, httplimit.Config{}), proxy.Config{})
	front := httptest.NewServer(p)
	defer front.Close()
	var conns []lineConn
	for range open {
		conn, _ := upgrade(t, front.URL)
		conns = append(conns, conn)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if first, second := p.Drain(ctx), p.Drain(ctx); first != open || second != 0 {
		t.Errorf("%d and then %d were cut off, want %d and 0", first, second, open)
	}
	for _, conn := range conns {
		wantCut(t, conn, ended)
	}
}
