// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
	"github.com/metehq/mete/storetest"
)

// Rules and the upstream see the same host: a request without a host is rejected, instead of being sent with the
// upstream's name.
func TestHost_Required(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [{"name": "host", "limit_keys": ["host"], "match": {"host": "127.0.0.1"},
		"algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 1}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(storetest.NewModel(func() bucket.Instant { return 1 }), m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := httplimit.New(lim, httplimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 100)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) { seen <- r.Host })
	p := newProxy(t, upstream, mw, proxy.Config{})
	front := serveProxy(t, upstream, mw, proxy.Config{})
	for _, request := range []string{
		"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\nHost:\r\n\r\n", "GET / HTTP/1.1\r\nHost: \r\nConnection: close\r\n\r\n",
		"GET http:///x HTTP/1.1\r\nHost: \r\nConnection: close\r\n\r\n",
	} {
		if status, body := exchange(t, front, request); status != 400 || !strings.Contains(body, "host") {
			t.Errorf("%q: got %d %s, want 400 that names the host", request, status, body)
		}
	}
	if status := ask2(t, serveH2C(t, p), [][2]string{{":method", "GET"}, {":scheme", "http"}, {":path", "/"}}, ""); status != 400 {
		t.Errorf("HTTP/2 without :authority: got %d, want 400", status)
	}
	if len(seen) > 0 {
		t.Errorf("the upstream was sent a request for %q", <-seen)
	}
	for request, want := range map[string]string{
		"GET / HTTP/1.0\r\nHost: b\r\n\r\n":                                   "b",
		"GET http://c/x HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n":     "c",
		"GET http://c:80/x HTTP/1.1\r\nHost: \r\nConnection: close\r\n\r\n":   "c:80",
		"GET http://c:80/x HTTP/1.1\r\nHost: c.\r\nConnection: close\r\n\r\n": "c:80",
	} {
		if status, body := exchange(t, front, request); status != 200 {
			t.Errorf("%q: got %d %s, want 200", request, status, body)
		} else if got := receive(t, seen, request); got != want {
			t.Errorf("%q: the upstream was sent the host %q, want %q", request, got, want)
		}
	}
}

// A Content-Length of HTTP/2 that is none is not sent on as a length of 0.
func TestHTTP2_ContentLength(t *testing.T) {
	var reached atomic.Int64
	p := newProxy(t, serve(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) }), middleware(t, 100, httplimit.Config{}), proxy.Config{})
	front := serveH2C(t, p)
	for _, length := range []string{"3,3", "+3", "0x3", "99999999999999999999", "-1", ""} {
		fields := [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a"}, {"content-length", length}}
		if status := ask2(t, front, fields, ""); status == 200 {
			t.Errorf("content-length %q: got 200", length)
		}
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("%d requests reached the upstream", n)
	}
	if status := ask2(t, front, [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a"}, {"content-length", "3"}}, "abc"); status != 200 {
		t.Errorf("content-length 3: got %d, want 200", status)
	}
}

// ask2 sends one request in hand-made HTTP/2 frames and returns the status of the response: 0 if the stream is
// reset.
func ask2(t *testing.T, address string, fields [][2]string, body string) int {
	t.Helper()
	const (
		typeData, typeHeaders, typeReset, typeSettings, typeGoAway = 0, 1, 3, 4, 7
		endStream, endHeaders                                      = 1, 4
	)
	conn, from := dial(t, address)
	frame := func(kind, flags byte, stream uint32, payload []byte) {
		head := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))[1:]
		head = binary.BigEndian.AppendUint32(append(head, kind, flags), stream)
		if _, err := conn.Write(append(head, payload...)); err != nil {
			t.Fatal(err)
		}
	}
	io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	frame(typeSettings, 0, 0, nil)
	var block []byte
	for _, f := range fields { // as literals without an index: RFC 7541, 6.2.2
		block = append(append(block, 0, byte(len(f[0]))), f[0]...)
		block = append(append(block, byte(len(f[1]))), f[1]...)
	}
	if body == "" {
		frame(typeHeaders, endStream|endHeaders, 1, block)
	} else {
		frame(typeHeaders, endHeaders, 1, block)
		frame(typeData, endStream, 1, []byte(body))
	}
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(from, head); err != nil {
			t.Fatalf("%q: %v", fields, err)
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(from, payload); err != nil {
			t.Fatalf("%q: %v", fields, err)
		}
		switch head[3] {
		case typeHeaders: // whose first field is :status, by its index: RFC 7541, A
			status, ok := map[byte]int{0x88: 200, 0x8c: 400, 0x8e: 500}[payload[0]]
			if !ok {
				t.Fatalf("%q: the answer begins with %x", fields, payload)
			}
			return status
		case typeReset, typeGoAway:
			return 0
		}
	}
}

// net/http hides a Transfer-Encoding of HTTP/1.0, so the connection ends after a body.
func TestHTTP10_EndsAfterABody(t *testing.T) {
	var reached atomic.Int64
	front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		io.Copy(io.Discard, r.Body)
	}), 100, proxy.Config{})
	conn, from := dial(t, front)
	io.WriteString(conn, "POST / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"+
		"GET /smuggled HTTP/1.0\r\nHost: a\r\n\r\n")
	resp, err := http.ReadResponse(from, nil)
	if err != nil || resp.StatusCode != 200 || !resp.Close {
		t.Fatalf("got %+v (%v), want 200 and the end of the connection", resp, err)
	}
	io.Copy(io.Discard, resp.Body)
	if rest, _ := io.ReadAll(from); len(rest) > 0 || reached.Load() != 1 {
		t.Errorf("then got %q, and %d requests reached the upstream", rest, reached.Load())
	}
	conn, from = dial(t, front)
	for range 2 { // connections without bodies are kept
		io.WriteString(conn, "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
		if resp, err := http.ReadResponse(from, nil); err != nil || resp.StatusCode != 200 || resp.Close {
			t.Fatalf("without a body: got %+v (%v), want 200 and the connection", resp, err)
		}
	}
}

// A WebSocket is opened by GET alone: what asks for one with a body or another method is
// sent on without Upgrade.
func TestWebSocket_OnlyByGET(t *testing.T) {
	upstream, sent := recorder(t)
	front := start(t, upstream, 100, proxy.Config{Upgrades: []string{"websocket", "tcp"}})
	for _, tt := range []struct {
		method, protocol string
		passes           bool
	}{{"GET", "websocket", true}, {"POST", "websocket", false}, {"PUT", "WebSocket", false}, {"POST", "tcp", true}} {
		exchange(t, front, tt.method+" / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: "+tt.protocol+"\r\nContent-Length: 0\r\n\r\n")
		if text := sent(); strings.Contains(text, "Upgrade: ") != tt.passes {
			t.Errorf("%s, upgrade to %s: the upstream was sent\n%s", tt.method, tt.protocol, text)
		}
	}
}

// mete's limit fields replace the upstream's in trailers and informational responses.
func TestOwnFieldsWin_InTrailersAndHints(t *testing.T) {
	const theirs = "RateLimit: \"theirs\";r=9;t=9\r\nX-RateLimit-Reason: theirs\r\n"
	for _, trailer := range []string{"Trailer: RateLimit, X-RateLimit-Reason, X-Sum\r\n", ""} {
		upstream := answering(t, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n"+theirs+"\r\n"+
			"HTTP/1.1 200 OK\r\n"+trailer+theirs+"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"+theirs+"X-Sum: 1\r\n\r\n")
		conn, from := dial(t, start(t, upstream, 5, proxy.Config{}))
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		all, err := io.ReadAll(bufio.NewReader(from))
		if err != nil {
			t.Fatal(err)
		}
		text := string(all)
		if strings.Contains(text, "theirs") || !strings.Contains(text, "103 Early Hints\r\nLink: </a>\r\n") || !strings.Contains(text, "X-Sum: 1\r\n") || !strings.Contains(text, `"all";r=4`) {
			t.Errorf("the client was sent\n%s", text)
		}
	}
}

// A trailer with the name of a field in a rule is rejected. Servers that merge it into the header would read
// another key.
func TestTrailer_NamedAsAKey(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [{"name": "key", "limit_keys": ["header:x-api-key"],
		"algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 100}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(storetest.NewModel(func() bucket.Instant { return 1 }), m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := httplimit.New(lim, httplimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	for protocol, send := range speak(t, newProxy(t, upstream, mw, proxy.Config{})) {
		for name, want := range map[string]int{"X-Api-Key": 400, "X-Sum": 200} {
			r := clientRequest()
			r.Method, r.Body, r.ContentLength = http.MethodPost, io.NopCloser(strings.NewReader("x")), -1
			r.Header, r.Trailer = http.Header{"X-Api-Key": {"a"}}, http.Header{name: {"real"}}
			// The server of net/http ends an HTTP/2 connection on which a trailer comes behind
			// the answer. The client then sends the next request over another connection.
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("x")), nil }
			if resp, err := send(r); err != nil || resp.StatusCode != want {
				t.Errorf("%s as a trailer by %s: got %v (%v), want %d", name, protocol, resp, err, want)
			}
		}
	}
}
