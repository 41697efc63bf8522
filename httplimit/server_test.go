// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/storetest"
)

// dial opens a connection to a server of handler behind byAddress, on which
// everything must happen in time.
func dial(t *testing.T, config httplimit.Config, handler http.Handler) (net.Conn, *bufio.Reader) {
	t.Helper()
	clock := new(clock)
	limited := newMiddleware(t, newLimiter(t, storetest.NewModel(clock.instant), byAddress), config).Wrap(handler)
	server := httptest.NewUnstartedServer(limited)
	server.Config.MaxHeaderBytes = 4 << 20
	server.Start()
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	return conn, bufio.NewReader(conn)
}

// HTTP/1 sends each name once, in the spelling of net/http.
func TestServer_SpellsNames(t *testing.T) {
	conn, in := dial(t, httplimit.Config{Fields: []string{"draft-11", "legacy", "x"}}, ok)
	fmt.Fprint(conn, strings.Repeat("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 2)+"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	all, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Ratelimit: ", "Ratelimit-Policy: ", "Ratelimit-Limit: ", "Ratelimit-Remaining: ", "Ratelimit-Reset: ",
		"X-Ratelimit-Limit: ", "X-Ratelimit-Remaining: ", "X-Ratelimit-Reset: "} {
		if got := strings.Count(string(all), "\r\n"+want); got != 3 {
			t.Errorf("field %q: got %d in 3 answers:\n%s", want, got, all)
		}
	}
	for _, want := range []string{"HTTP/1.1 429 ", "\r\nRetry-After: ", "\r\nX-Ratelimit-Reason: token_bucket_exceeded\r\n", "\r\nCache-Control: no-store\r\n"} {
		if got := strings.Count(string(all), want); got != 1 {
			t.Errorf("%q: got %d in one denial:\n%s", want, got, all)
		}
	}
}

// Flushed data arrives before the handler returns, with the fields.
func TestServer_Streams(t *testing.T) {
	release := make(chan struct{})
	conn, in := dial(t, httplimit.Config{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := control.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Errorf("SetWriteDeadline: %v", err)
		}
		if err := control.EnableFullDuplex(); err != nil {
			t.Errorf("EnableFullDuplex: %v", err)
		}
		if _, isReaderFrom := w.(io.ReaderFrom); !isReaderFrom {
			t.Error("the handler's writer has lost its ReadFrom")
		}
		io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		<-release
		io.WriteString(w, "second")
	}))
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		close(release)
		t.Fatal(err)
	}
	defer res.Body.Close()
	buf := make([]byte, 5)
	_, err = io.ReadFull(res.Body, buf)
	close(release)
	if err != nil || string(buf) != "first" || res.Header.Get("RateLimit-Remaining") != "1" {
		t.Errorf("got %q (%v), header %v", buf, err, res.Header)
	}
	if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "second" {
		t.Errorf("got %q (%v), want second", rest, err)
	}
}

func TestServer_Hijacks(t *testing.T) {
	conn, in := dial(t, httplimit.Config{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		taken, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Errorf("Hijack: %v", err)
			return
		}
		defer taken.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, "echo "+line)
		rw.Flush()
	}))
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nping\n")
	all, err := io.ReadAll(in)
	if err != nil || !strings.HasSuffix(string(all), "\r\n\r\necho ping\n") {
		t.Errorf("got %q (%v)", all, err)
	}
}

// A denied HEAD has the fields of a GET and no body, so that the connection
// stays in step.
func TestServer_DeniesHead(t *testing.T) {
	conn, in := dial(t, httplimit.Config{}, ok)
	for i, want := range []int{200, 200, 429, 429} {
		fmt.Fprint(conn, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
		res, err := http.ReadResponse(in, &http.Request{Method: "HEAD"})
		if err != nil || res.StatusCode != want {
			t.Fatalf("request %d: got %v (%v), want %d", i, res, err, want)
		}
	}
}

// The handler gets the request and the writer that the server made.
func TestWrap_ChangesNothing(t *testing.T) {
	var clock clock
	r, w := httptest.NewRequest("GET", "/a//b?x=1", nil), httptest.NewRecorder()
	r.Header.Set("X-Forwarded-For", "1.1.1.1")
	before := r.Clone(t.Context())
	called := false
	handler := newMiddleware(t, newLimiter(t, storetest.NewModel(clock.instant), byAddress), httplimit.Config{TrustedHops: 1}).Wrap(
		http.HandlerFunc(func(gotW http.ResponseWriter, gotR *http.Request) {
			called = true
			if gotR != r || gotW != http.ResponseWriter(w) {
				t.Error("the handler gets another request or writer than the server made")
			}
		}))
	handler.ServeHTTP(w, r)
	if !called || r.URL.String() != before.URL.String() || len(r.Header) != len(before.Header) || r.RemoteAddr != before.RemoteAddr {
		t.Errorf("called %v; the request was %v, and is %v", called, before, r)
	}
}

// One mebibyte of header, wherever it is, is limited as anything else.
func TestServer_HostileHeaders(t *testing.T) {
	const rules = `{"name": "keyed", "limit_keys": ["header:x-api-key", "cookie:session", "query:q", "ip:address", "path", "host"],
		"algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 1}}`
	clock := new(clock)
	limited := newMiddleware(t, newLimiter(t, storetest.NewModel(clock.instant), rules), httplimit.Config{TrustedHops: 2}).Wrap(ok)
	server := httptest.NewUnstartedServer(limited)
	server.Config.MaxHeaderBytes = 4 << 20
	server.Start()
	t.Cleanup(server.Close)
	for _, unit := range []string{"a", "1.1.1.1, ", `"\`, "=;&", "\x80\xff"} {
		junk := strings.Repeat(unit, 1<<20/len(unit))
		for i, want := range []int{200, 429} {
			r, err := http.NewRequest("GET", server.URL+"/?q=1", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header["X-Forwarded-For"] = []string{junk, "198.51.100.7"}
			r.Header["X-Api-Key"] = []string{junk}
			r.Header["Cookie"] = []string{"a=b; session=x" + junk}
			res, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != want {
				t.Errorf("junk %q, request %d: got status %d, want %d: %.200s", unit, i, res.StatusCode, want, body)
			}
		}
	}
}
