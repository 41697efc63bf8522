// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/proxy"
)

// A body that turns out to be too long while the answer is on its way does not touch
// that. (The race detector would see it.)
func TestBodyBound_WhileTheAnswerBegins(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	answered := make(chan struct{})
	var fields strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&fields, "X-Field-%d: v\r\n", i)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			http.ReadRequest(bufio.NewReader(conn))
			io.WriteString(conn, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n"+fields.String())
			answered <- struct{}{}
			io.WriteString(conn, "\r\nno")
			defer conn.Close()
		}
	}()
	front := start(t, "http://"+l.Addr().String(), 1000, proxy.Config{MaxBodyBytes: 10})
	for range 50 {
		conn, from := dial(t, front)
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
		receive(t, answered, "answer of the upstream")
		io.WriteString(conn, "10\r\n0123456789abcdef\r\n0\r\n\r\n")
		if resp, err := http.ReadResponse(from, nil); err != nil || resp.StatusCode != 401 && resp.StatusCode != 413 {
			t.Fatalf("got %v (%v), want 401 or 413", resp, err)
		}
		conn.Close()
	}
}

// A body with too large a Content-Length is rejected before it is forwarded.
func TestBodyBound_ByItsLength(t *testing.T) {
	var dialed atomic.Bool
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed.Store(true)
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	p := newProxy(t, answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), middleware(t, 2, httplimit.Config{}), proxy.Config{MaxBodyBytes: 10, Dial: dial})
	for _, tt := range []struct {
		body   string
		status int
	}{{"01234567890", 413}, {"0123456789", 200}} {
		w := ask(p, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tt.body)))
		if s := p.Stats()[0].Servers[0]; w.Code != tt.status || (s.Answers[2] > 0) != (tt.status == 200) || dialed.Load() != (tt.status == 200) {
			t.Errorf("%d bytes: got %d, dialed: %v, %+v", len(tt.body), w.Code, dialed.Load(), s)
		}
	}
}
