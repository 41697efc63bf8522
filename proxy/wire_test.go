// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/proxy"
)

// exchange sends raw bytes and returns the status and the body of the response.
func exchange(t *testing.T, addr, request string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(addr, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	return resp.StatusCode, string(body)
}

// recorder is an upstream that answers everything with 200, and records what it was
// sent on its wire.
func recorder(t *testing.T) (url string, sent func() string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	text := make(chan string, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				var raw strings.Builder
				from := bufio.NewReader(io.TeeReader(conn, &raw))
				for {
					r, err := http.ReadRequest(from)
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
					text <- raw.String()
					raw.Reset()
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=5\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"+
						"Proxy-Authenticate: Basic\r\nUpgrade: h2c\r\nX-Kept: 1\r\n\r\nok")
				}
			}()
		}
	}()
	return "http://" + l.Addr().String(), func() string { return receive(t, text, "request on the wire") }
}

// Fields for one hop go no further, in either direction.
func TestHopByHop(t *testing.T) {
	upstream, sent := recorder(t)
	front := start(t, upstream, 100, proxy.Config{})
	resp, _ := get(t, front, "Connection", "X-Mine, keep-alive", "X-Mine", "1", "Keep-Alive", "300", "Proxy-Connection", "keep-alive",
		"Proxy-Authorization", "Basic eDp5", "Proxy-Authenticate", "x", "Proxy", "http://evil.example", "Te", "deflate, trailers;q=0.5", "Upgrade", "h2c",
		"Http2-Settings", "AAMAAABkAAQAAP__", "X-Kept", "1")
	text := sent()
	for _, gone := range []string{"x-mine", "keep-alive", "proxy", "deflate", "upgrade", "settings", "connection"} {
		if strings.Contains(strings.ToLower(text), gone) {
			t.Errorf("the upstream was sent %q:\n%s", gone, text)
		}
	}
	for _, kept := range []string{"X-Kept: 1", "Te: trailers"} {
		if !strings.Contains(text, kept+"\r\n") {
			t.Errorf("the upstream was not sent %q:\n%s", kept, text)
		}
	}
	for _, gone := range []string{"Keep-Alive", "Connection", "X-Hop", "Proxy-Authenticate", "Upgrade"} {
		if got := resp.Header.Get(gone); got != "" {
			t.Errorf("the client was sent %s: %s", gone, got)
		}
	}
	if resp.Header.Get("X-Kept") != "1" {
		t.Error("the client was not sent X-Kept")
	}
}

// Only allowed upgrades are requested: after an upgrade to h2c, requests would bypass every limit.
func TestUpgradesAreChosen(t *testing.T) {
	upstream, sent := recorder(t)
	for _, tt := range []struct {
		protocols []string
		asked     string
		passes    bool
	}{
		{nil, "websocket", true}, {nil, "WebSocket", true}, {nil, "h2c", false}, {nil, "websocket, h2c", false}, {nil, "tcp", false}, {nil, "TLS/1.0", false},
		{[]string{"tcp"}, "tcp", true}, {[]string{"tcp"}, "websocket", false}, {[]string{}, "websocket", false},
	} {
		front := start(t, upstream, 100, proxy.Config{Upgrades: tt.protocols})
		status, _ := exchange(t, front, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: "+tt.asked+"\r\nHTTP2-Settings: AAMAAABk\r\n\r\n")
		text := strings.ToLower(sent())
		if passes := strings.Contains(text, "upgrade: "+strings.ToLower(tt.asked)+"\r\n") && strings.Contains(text, "connection: upgrade\r\n"); passes != tt.passes || status != 200 {
			t.Errorf("upgrades %q, asked for %q: status %d, the upstream was sent\n%s", tt.protocols, tt.asked, status, text)
		}
		if strings.Contains(text, "settings") {
			t.Errorf("asked for %q: the upstream was sent settings:\n%s", tt.asked, text)
		}
	}
	front := start(t, upstream, 100, proxy.Config{})
	exchange(t, front, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: close\r\n\r\n") // no effect without Connection: Upgrade
	if text := sent(); strings.Contains(text, "Upgrade") {
		t.Errorf("without Connection: the upstream was sent\n%s", text)
	}
}

// A message whose end could be understood in two ways is refused, or sent on with one
// end. After it, nothing that a client hid in a body is a request.
func TestSmuggling(t *testing.T) {
	upstream, sent := recorder(t)
	front := strings.TrimPrefix(start(t, upstream, 1000, proxy.Config{}), "http://")
	const hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, head := range map[string]string{
		"two lengths":            "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
		"a list of lengths":      "Content-Length: 5, 6\r\n\r\nhello",
		"a negative length":      "Content-Length: -5\r\n\r\nhello",
		"a signed length":        "Content-Length: +5\r\n\r\nhello",
		"a hex length":           "Content-Length: 0x5\r\n\r\nhello",
		"an unknown coding":      "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
		"two codings":            "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
		"chunked twice":          "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"a disguised coding":     "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		"a space before a colon": "Content-Length : 5\r\n\r\nhello",
		"a fold at first":        " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"a NUL":                  "X: a\x00b\r\n\r\n",
		"a bare CR":              "X: a\rb\r\n\r\n",
		"no host":                "Host: b\r\n\r\n", // two, that is
	} {
		if status, _ := exchange(t, front, "POST / HTTP/1.1\r\nHost: a\r\n"+head+hidden); status != 400 && status != 501 {
			t.Errorf("%s: got %d, want 400 or 501", name, status)
		}
	}
	for name, tt := range map[string]struct{ head, one string }{
		"a coding and a length":  {"Content-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n"},
		"the same length twice":  {"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "Content-Length: 5\r\n"},
		"a chunk with extension": {"Transfer-Encoding: chunked\r\n\r\n5;ext=\"a\"\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n"},
		"a folded field":         {"X-Folded: a\r\n b\r\nContent-Length: 5\r\n\r\nhello", "X-Folded: a b\r\n"},
		"a tab before a coding":  {"Transfer-Encoding:\tchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n"},
	} {
		status, _ := exchange(t, front, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"+tt.head)
		if status == 400 { // which is as good
			continue
		}
		text := sent()
		if ends := strings.Count(text, "Content-Length") + strings.Count(text, "Transfer-Encoding"); status != 200 || ends != 1 || !strings.Contains(text, tt.one) || strings.Contains(text, "ext") {
			t.Errorf("%s: got %d, and the upstream was sent\n%s", name, status, text)
		}
	}
	for name, chunks := range map[string]string{"a bad size": "zz\r\nhello\r\n0\r\n\r\n", "a huge size": "fffffffffffffffff\r\n", "a chunk too long": "5\r\nhelloX\r\n0\r\n\r\n"} {
		status, _ := exchange(t, front, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"+chunks+hidden)
		if status != 400 {
			t.Errorf("%s: got %d, want 400: the client is to blame", name, status)
		}
	}
}

// Announced trailers are forwarded, except fields that a server would trust in a header.
func TestRequestTrailers(t *testing.T) {
	upstream, sent := recorder(t)
	front := start(t, upstream, 10, proxy.Config{})
	exchange(t, front, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"+
		"Trailer: X-Sum, X-Forwarded-For, Connection, Authorization, Host\r\n\r\n5\r\nhello\r\n0\r\n"+
		"X-Sum: 42\r\nX-Forwarded-For: 6.6.6.6\r\nConnection: x-other\r\nAuthorization: Bearer x\r\nHost: b\r\nX-Other: 1\r\n\r\n")
	text := sent()
	if !strings.Contains(text, "Trailer: X-Sum\r\n") || !strings.HasSuffix(text, "\r\n0\r\nX-Sum: 42\r\n\r\n") {
		t.Errorf("the upstream was sent\n%s\nwant a trailer of X-Sum alone", text)
	}
}

// An unknown status is the upstream's error and causes no panic.
func TestStatus_Unknown(t *testing.T) {
	for _, status := range []string{"000", "042", "099"} {
		resp, body := get(t, start(t, answering(t, "HTTP/1.1 "+status+" X\r\nContent-Length: 2\r\n\r\nok"), 1, proxy.Config{}))
		wantProblem(t, resp, body, 502)
	}
	if resp, body := get(t, start(t, answering(t, "HTTP/1.1 799 X\r\nContent-Length: 2\r\n\r\nok"), 1, proxy.Config{})); resp.StatusCode != 799 || body != "ok" {
		t.Errorf("got %d %q, want 799 as it came", resp.StatusCode, body)
	}
}

// An upstream whose header has no end is cut off.
func TestAnswerHeader_Bound(t *testing.T) {
	for size, want := range map[int]int{900 << 10: 200, 1100 << 10: 502} {
		w := ask(newProxy(t, answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: "+strings.Repeat("x", size)+"\r\n\r\nok"),
			middleware(t, 1, httplimit.Config{}), proxy.Config{}), getRequest())
		if w.Code != want {
			t.Errorf("%d bytes: got %d, want %d", size, w.Code, want)
		}
	}
}

// Headers of responses without a body come from the upstream.
func TestHeadAndRanges(t *testing.T) {
	front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "a.txt", time.Unix(1e9, 0), strings.NewReader(strings.Repeat("0123456789", 1000)))
	}), 100, proxy.Config{})
	resp, err := http.Head(front)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || resp.ContentLength != 10000 {
		t.Errorf("HEAD: got %d and %d bytes, want 10000", resp.StatusCode, resp.ContentLength)
	}
	if resp, body := get(t, front, "Range", "bytes=5-7"); resp.StatusCode != 206 || body != "567" || resp.Header.Get("Content-Range") != "bytes 5-7/10000" {
		t.Errorf("a range: got %d %q %s", resp.StatusCode, body, resp.Header.Get("Content-Range"))
	}
	if resp, _ := get(t, front, "If-Modified-Since", time.Unix(1e9, 0).UTC().Format(http.TimeFormat)); resp.StatusCode != 304 {
		t.Errorf("not modified: got %d", resp.StatusCode)
	}
}
