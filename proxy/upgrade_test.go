// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/proxy"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// switching is an upstream that switches to a protocol, and has talk speak it.
func switching(t *testing.T, talk func(net.Conn, *bufio.ReadWriter)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+r.Header.Get("Upgrade")+"\r\n\r\n")
		talk(conn, rw)
	}
}

// Data that a client sends before the upstream agrees arrives. Either direction may end first, and later data
// arrives too.
func TestWebSocket_HalfClose(t *testing.T) {
	front := start(t, serve(t, switching(t, func(conn net.Conn, rw *bufio.ReadWriter) {
		all, err := io.ReadAll(rw) // until the client closes its side
		if err != nil {
			t.Error(err)
		}
		conn.Write(append([]byte("you said "), all...))
	})), 1, proxy.Config{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(front, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly ")
	from := bufio.NewReader(conn)
	if resp, err := http.ReadResponse(from, nil); err != nil || resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "websocket" {
		t.Fatalf("got %+v (%v)", resp, err)
	}
	io.WriteString(conn, "late")
	closeWrite(t, conn)
	if text, err := io.ReadAll(from); string(text) != "you said early late" || err != nil {
		t.Errorf("got %q (%v)", text, err)
	}
}

// An upstream that dies takes its client along.
func TestWebSocket_UpstreamDies(t *testing.T) {
	front := start(t, serve(t, switching(t, func(conn net.Conn, rw *bufio.ReadWriter) {
		io.WriteString(conn, "last words\n")
		conn.(*net.TCPConn).SetLinger(0) // a reset
	})), 1, proxy.Config{})
	conn, _ := upgrade(t, front)
	// The reset may overtake the words.
	if text, err := io.ReadAll(conn); len(text) > 0 && string(text) != "last words\n" {
		t.Errorf("got %q (%v), want the end", text, err)
	}
}

// A client that reads slowly gets everything, and its upstream waits for it.
func TestWebSocket_SlowConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 4 << 20 // more than all buffers on the way hold
		n, written := newNetwork(t), make(chan int64, 1)
		defer n.serve("a:80", switching(t, func(conn net.Conn, rw *bufio.ReadWriter) {
			n, _ := io.CopyN(conn, zeros{}, size)
			written <- n
		}))()
		p := n.gate(proxy.Config{}, proxy.Health{}, "a:80")
		defer p.Close()
		defer n.serve("front:80", p.ServeHTTP)()
		conn, _ := upgradeOn(t, n.connect("front:80").Conn)
		io.ReadFull(conn, make([]byte, 1<<10))
		synctest.Wait()
		if len(written) > 0 {
			t.Error("the upstream has written all before the client has read it")
		}
		if n, err := io.Copy(io.Discard, conn); n != size-1<<10 || err != nil {
			t.Errorf("got %d bytes (%v), want %d", n, err, size-1<<10)
		}
		if n := receive(t, written, "end of the upstream"); n != size {
			t.Errorf("the upstream has written %d bytes", n)
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// An upstream that switches to another protocol has failed.
func TestWebSocket_WrongProtocol(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			http.ReadRequest(bufio.NewReader(conn))
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nrest")
		}
	}()
	front := start(t, "http://"+l.Addr().String(), 10, proxy.Config{})
	for _, request := range []string{"", "Connection: Upgrade\r\nUpgrade: websocket\r\n", "Connection: Upgrade\r\nUpgrade: h2c\r\n"} {
		status, body := exchange(t, front, "GET / HTTP/1.1\r\nHost: x\r\n"+request+"\r\n")
		if status != 502 || strings.Contains(body, "h2c") {
			t.Errorf("asked with %q: got %d %s, want 502", request, status, body)
		}
	}
}

// A server that speaks HTTP/2 is asked for an upgrade in HTTP/1, over which alone there
// is one, and for everything else in HTTP/2.
func TestWebSocket_OverTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			io.WriteString(w, r.Proto)
			return
		}
		switching(t, func(conn net.Conn, rw *bufio.ReadWriter) { io.WriteString(conn, "hello\n") })(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	target, _ := url.Parse(server.URL)
	front := httptest.NewServer(gateTo(t, proxy.Upstream{Servers: []*url.URL{target}, TLS: &tls.Config{RootCAs: roots}}, proxy.Config{}))
	defer front.Close()
	for range 2 {
		conn, resp := upgrade(t, front.URL)
		if text, err := conn.ReadString('\n'); resp.StatusCode != 101 || text != "hello\n" {
			t.Errorf("got %d and then %q (%v)", resp.StatusCode, text, err)
		}
		if resp, body := get(t, front.URL); resp.StatusCode != 200 || body != "HTTP/2.0" {
			t.Errorf("what is no upgrade: got %d %q, want 200 by HTTP/2.0", resp.StatusCode, body)
		}
	}
}

// A server of HTTP/2 without TLS has nothing to upgrade to: it is asked without, and is
// not to blame.
func TestWebSocket_ToH2C(t *testing.T) {
	observed := make(chan error, 1)
	up := serveH2C(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Header.Get("Upgrade")+r.Header.Get("Connection")+"plain")
	}))
	front := httptest.NewServer(gateTo(t, proxy.Upstream{Servers: []*url.URL{{Scheme: "h2c", Host: up}}},
		proxy.Config{Observe: func(_ time.Duration, err error) { observed <- err }}))
	defer front.Close()
	if status, body := exchange(t, front.URL, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); status != 200 || body != "plain" {
		t.Errorf("got %d %q, want an answer without an upgrade", status, body)
	}
	if err := receive(t, observed, "observation"); err != nil {
		t.Errorf("observed error %v", err)
	}
}

// HTTP/1.0 knows no upgrades, and "webſocket" is no spelling of websocket.
func TestUpgrades_NotRequested(t *testing.T) {
	upstream, sent := recorder(t)
	front := start(t, upstream, 100, proxy.Config{})
	for _, request := range []string{"HTTP/1.0\r\nUpgrade: websocket", "HTTP/1.1\r\nUpgrade: web\u017focket"} {
		exchange(t, front, "GET / "+request+"\r\nHost: a\r\nConnection: upgrade, close\r\n\r\n")
		if text := sent(); strings.Contains(text, "Upgrade") {
			t.Errorf("%q: the upstream was sent\n%s", request, text)
		}
	}
}

// An upstream that switches before the end of the request has failed: the rest of the body would be read as the
// other protocol.
func TestUpgrade_BeforeTheBodyHasEnded(t *testing.T) {
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switching(t, func(conn net.Conn, rw *bufio.ReadWriter) { io.Copy(io.Discard, rw) })(w, r)
	})
	conn, from := dial(t, start(t, up, 1, proxy.Config{}))
	io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 10\r\n\r\nhello")
	if resp, err := http.ReadResponse(from, nil); err != nil || resp.StatusCode != 502 {
		t.Errorf("got %v (%v), want 502", resp, err)
	}
}

// A server that cancels its requests also ends upgraded ones.
func TestWebSocket_ServerEnds(t *testing.T) {
	ended := make(chan struct{})
	upstream := serve(t, switching(t, func(conn net.Conn, rw *bufio.ReadWriter) {
		io.Copy(io.Discard, rw)
		close(ended)
	}))
	ctx, cancel := context.WithCancel(context.Background())
	front := httptest.NewUnstartedServer(newProxy(t, upstream, middleware(t, 1, httplimit.Config{}), proxy.Config{}))
	front.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	front.Start()
	defer front.Close()
	conn, resp := upgrade(t, front.URL)
	if resp.StatusCode != 101 {
		t.Fatalf("got %d", resp.StatusCode)
	}
	cancel()
	receive(t, ended, "end at the upstream")
	if _, err := conn.ReadString('\n'); err == nil {
		t.Error("the client's connection is still open")
	}
}
