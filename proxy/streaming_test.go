// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/proxy"
)

func TestAnswersStream(t *testing.T) {
	next := make(chan struct{})
	front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			io.WriteString(w, "data: x\n")
			w.(http.Flusher).Flush()
			<-next // which only comes once the client has read it
		}
	}), 5, proxy.Config{})
	resp, err := http.Get(front)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for i := range 3 {
		got := make(chan string, 1)
		go func() {
			line, _ := lines.ReadString('\n')
			got <- line
		}()
		if line := receive(t, got, "event"); line != "data: x\n" {
			t.Fatalf("event %d: got %q", i, line)
		}
		next <- struct{}{}
	}
}

func TestRequestsStream(t *testing.T) {
	got := make(chan string)
	front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		buf := make([]byte, 4)
		for range 3 {
			io.ReadFull(r.Body, buf)
			got <- string(buf)
		}
	}), 5, proxy.Config{})
	body, write := io.Pipe()
	done := make(chan error, 1)
	go func() {
		resp, err := http.Post(front, "text/plain", body)
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	for _, part := range []string{"abcd", "efgh", "ijkl"} {
		io.WriteString(write, part)
		if seen := receive(t, got, "part of the body"); seen != part {
			t.Errorf("the upstream read %q, want %q", seen, part)
		}
	}
	write.Close()
	if err := receive(t, done, "answer"); err != nil {
		t.Error(err)
	}
}

func TestBigBodiesPass(t *testing.T) {
	front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(w, r.Body); err != nil {
			t.Error(err)
		}
	}), 5, proxy.Config{})
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MiB
	resp, err := http.Post(front, "application/octet-stream", bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, resp.Body)
	if want := sha256.Sum256(sent); err != nil || int(n) != len(sent) || !bytes.Equal(sum.Sum(nil), want[:]) {
		t.Errorf("got %d bytes and error %v, want the %d bytes that were sent", n, err, len(sent))
	}
}

func TestTrailersPass(t *testing.T) {
	front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "hello")
		w.Header().Set("X-Sum", "42")
	}), 5, proxy.Config{})
	if resp, body := get(t, front); body != "hello" || resp.Trailer.Get("X-Sum") != "42" {
		t.Errorf("got %q with trailer %v, want hello with X-Sum 42", body, resp.Trailer)
	}
}

func TestCompressedPasses(t *testing.T) {
	front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Asked", r.Header.Get("Accept-Encoding"))
	}), 5, proxy.Config{})
	if resp, _ := get(t, front, "Accept-Encoding", "br"); resp.Header.Get("X-Asked") != "br" {
		t.Errorf("the upstream was asked for encoding %q, want br", resp.Header.Get("X-Asked"))
	}
}

// echo upgrades to a protocol that echoes each line, which is like a WebSocket for the proxy.
func echo(t *testing.T, ended chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || !strings.EqualFold(r.Header.Get("Connection"), "upgrade") {
			http.Error(w, "upgrade", http.StatusUpgradeRequired)
			return
		}
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer close(ended)
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nRateLimit: theirs\r\n\r\n")
		io.Copy(conn, rw)
	}
}

func TestWebSocket(t *testing.T) {
	ended := make(chan struct{})
	front := start(t, serve(t, echo(t, ended)), 1, proxy.Config{})
	conn, resp := upgrade(t, front)
	if got := resp.Header.Values("RateLimit"); resp.StatusCode != 101 || len(got) != 1 || got[0] != `"all";r=0;t=1` {
		t.Fatalf("got %d with RateLimit %q, want 101 with ours", resp.StatusCode, got)
	}
	for _, line := range []string{"one\n", "two\n"} {
		io.WriteString(conn, line)
		if got, err := conn.ReadString('\n'); got != line || err != nil {
			t.Errorf("echo: got %q and error %v, want %q", got, err, line)
		}
	}
	if denied, resp := upgrade(t, front); resp.StatusCode != 429 {
		t.Errorf("a second one, with 1 token: got %d, want 429", resp.StatusCode)
	} else {
		denied.Close()
	}
	conn.Close()
	receive(t, ended, "end of the connection to the upstream")
}

// A lineConn is a connection that is read by line.
type lineConn struct {
	net.Conn
	*bufio.Reader
}

func (c lineConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

func upgrade(t *testing.T, front string) (lineConn, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(front, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return upgradeOn(t, conn)
}

// upgradeOn asks for an upgrade of a connection.
func upgradeOn(t *testing.T, conn net.Conn) (lineConn, *http.Response) {
	t.Helper()
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	io.WriteString(conn, "GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	lines := lineConn{conn, bufio.NewReader(conn)}
	resp, err := http.ReadResponse(lines.Reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lines, resp
}
