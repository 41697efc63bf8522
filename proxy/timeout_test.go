// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/proxy"
)

// soon is a timeout of these tests that passes. Before it does, a busy machine has
// begun to answer.
const soon = time.Second

// dial connects to a front, for requests that are written by hand.
func dial(t *testing.T, front string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(front, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return conn, bufio.NewReader(conn)
}

// A client that does not go on with its body is answered, and its connection ends: it
// holds neither ours nor one to the upstream.
func TestClientStalls(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}, 10)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		ended <- struct{}{}
	})
	var errs counter
	front := start(t, upstream, 100, proxy.Config{ClientTimeout: soon, OnError: errs.onError})
	for name, begun := range map[string]string{"by length": "Content-Length: 10\r\n\r\nhello", "by chunks": "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"} {
		conn, from := dial(t, front)
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\n"+begun)
		resp, err := http.ReadResponse(from, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, _ := io.ReadAll(resp.Body)
		wantProblem(t, resp, string(body), 408)
		if _, err := from.ReadByte(); err != io.EOF {
			t.Errorf("%s: then got error %v, want the end of the connection", name, err)
		}
		receive(t, ended, "end at the upstream")
	}
	if got := errs.n.Load(); got != 0 {
		t.Errorf("OnError was called %d times: it is not the upstream's fault", got)
	}
}

// A rule that reads the body of a request to a language model waits for a client no longer than a server does.
func TestClientStalls_ModelRequest(t *testing.T) {
	t.Parallel()
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {})
	mw := ruledBy(t, `"algorithm": "token_bucket_llm", "tokens_per_minute": 100000`)
	conn, from := dial(t, serveProxy(t, upstream, mw, proxy.Config{ClientTimeout: soon}))
	io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{")
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode/100 != 4 {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// A client that goes on with its body may take longer for all of it than the timeout.
func TestClientIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.serve("a:80", named("a"))()
		p := n.gate(proxy.Config{ClientTimeout: soon}, proxy.Health{}, "a:80")
		defer p.Close()
		defer n.serve("front:80", p.ServeHTTP)()
		conn := n.connect("front:80")
		defer conn.Close()
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n")
		for _, c := range "abc" {
			time.Sleep(soon * 9 / 10)
			io.WriteString(conn, string(c))
		}
		if resp, err := http.ReadResponse(conn.Reader, nil); err != nil || resp.StatusCode != 200 {
			t.Errorf("a slow body: got %v (%v)", resp, err)
		}
	})
}

// Once the answer has begun, both sides may be silent.
func TestClientMayBeSilentAfterTheAnswerBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.serve("a:80", func(w http.ResponseWriter, r *http.Request) {
			control := http.NewResponseController(w)
			control.EnableFullDuplex()
			w.WriteHeader(200)
			control.Flush()
			io.Copy(w, r.Body)
		})()
		p := n.gate(proxy.Config{ClientTimeout: soon}, proxy.Health{}, "a:80")
		defer p.Close()
		defer n.serve("front:80", p.ServeHTTP)()
		body, write := io.Pipe()
		resp, err := n.client().Post("http://front:80", "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		time.Sleep(3 * soon)
		io.WriteString(write, "after all")
		write.Close()
		if text, err := io.ReadAll(resp.Body); string(text) != "after all" || err != nil {
			t.Errorf("got %q (%v)", text, err)
		}
	})
}

// A client that breaks off is the one to blame.
func TestClientBreaksOff(t *testing.T) {
	ended := make(chan error, 1)
	var errs counter
	observed := make(chan error, 1)
	front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		ended <- err
	}), 1, proxy.Config{OnError: errs.onError, Observe: func(_ time.Duration, err error) { observed <- err }})
	conn, from := dial(t, front)
	io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
	closeWrite(t, conn)
	if err := receive(t, ended, "end at the upstream"); err == nil {
		t.Error("the upstream took half of a body for a whole one")
	}
	if resp, err := http.ReadResponse(from, nil); err == nil && resp.StatusCode == 200 {
		t.Errorf("got %d", resp.StatusCode)
	}
	if errs.n.Load() != 0 || len(observed) != 0 {
		t.Errorf("OnError was called %d times, Observe %d times; want neither", errs.n.Load(), len(observed))
	}
}

// A client that does not take its answer is cut off, and the upstream is told.
func TestClientDoesNotRead(t *testing.T) {
	ended := make(chan error, 1)
	front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.CopyN(w, zeros{}, 64<<20)
		ended <- err
	}), 1, proxy.Config{ClientTimeout: soon})
	conn, _ := dial(t, front)
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if err := receive(t, ended, "end at the upstream"); err == nil {
		t.Error("the upstream has written everything, to nobody")
	}
}

// One that asks for many answers and reads none of them is no better off for their
// being short.
func TestClientDoesNotRead_ManyAnswers(t *testing.T) {
	var ended atomic.Bool
	p := newProxy(t, serve(t, func(w http.ResponseWriter, r *http.Request) { io.CopyN(w, zeros{}, 30000) }),
		middleware(t, 100_000, httplimit.Config{}), proxy.Config{ClientTimeout: soon})
	front := httptest.NewUnstartedServer(p)
	front.Config.ConnState = func(_ net.Conn, state http.ConnState) { ended.Store(state == http.StateClosed) }
	front.Start()
	defer front.Close()
	conn, _ := dial(t, front.URL)
	go io.WriteString(conn, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 10_000)) // until it is cut off
	until(t, "its connection is cut off", ended.Load)
}

// A client that reads slowly does not make an upstream one that stands still.
func TestUpstreamStalls_SlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 4 << 20 // more than all buffers on the way hold
		n := newNetwork(t)
		defer n.serve("a:80", func(w http.ResponseWriter, r *http.Request) { io.CopyN(w, zeros{}, size) })()
		var errs counter
		p := gateTo(t, proxy.Upstream{Servers: []*url.URL{{Scheme: "http", Host: "a:80"}}, BodyTimeout: soon},
			proxy.Config{OnError: errs.onError, Dial: n.dial})
		defer p.Close()
		defer n.serve("front:80", p.ServeHTTP)()
		resp, err := n.client().Get("http://front:80")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		time.Sleep(2 * soon)
		if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil || errs.n.Load() != 0 {
			t.Errorf("got %d bytes (%v) and %d errors, want %d", n, err, errs.n.Load(), size)
		}
	})
}

// An answer that stands still breaks off, if somebody has set a bound to that.
func TestUpstreamStalls(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}, 1)
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "some")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		ended <- struct{}{}
	})
	failed := make(chan error, 1)
	target, _ := url.Parse(upstream)
	p := gateTo(t, proxy.Upstream{Servers: []*url.URL{target}, BodyTimeout: soon}, proxy.Config{OnError: func(_ *http.Request, err error) { failed <- err }})
	front := httptest.NewServer(p)
	defer front.Close()
	resp, err := http.Get(front.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); string(text) != "some" || err == nil {
		t.Errorf("got %q (%v), want it to break off", text, err)
	}
	receive(t, ended, "end at the upstream")
	if err := receive(t, failed, "error"); !strings.Contains(err.Error(), "stalled") {
		t.Errorf("got error %v", err)
	}
}

// Expect: 100-continue is answered by mete for a denial, before the body is sent, and otherwise by the upstream.
func TestExpectContinue(t *testing.T) {
	front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refused" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		text, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.Header.Get("Expect"), text)
	}), 2, proxy.Config{})
	for _, tt := range []struct {
		path  string
		first int
	}{{"/", 100}, {"/refused", 401}, {"/", 429}} {
		conn, from := dial(t, front)
		io.WriteString(conn, "POST "+tt.path+" HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
		line, err := textproto.NewReader(from).ReadLine()
		if err != nil || !strings.HasPrefix(line, fmt.Sprintf("HTTP/1.1 %d ", tt.first)) {
			t.Errorf("%s: got %q (%v), want %d first", tt.path, line, err, tt.first)
			continue
		}
		if tt.first == 100 {
			textproto.NewReader(from).ReadLine()
			io.WriteString(conn, "hello")
			resp, err := http.ReadResponse(from, nil)
			if err != nil {
				t.Fatal(err)
			}
			if text, _ := io.ReadAll(resp.Body); string(text) != "100-continue hello" {
				t.Errorf("got %d %q", resp.StatusCode, text)
			}
		}
	}
}

// Informational answers pass, several of them, with the fields of the upstream and
// without ours.
func TestEarlyHints(t *testing.T) {
	front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			w.Header().Set("Link", fmt.Sprintf("</%d>; rel=preload", i))
			w.WriteHeader(http.StatusEarlyHints)
		}
		w.Header().Set("Link", "</last>")
		io.WriteString(w, "done")
	}), 1, proxy.Config{})
	conn, from := dial(t, front)
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	for i := range 3 {
		resp, err := http.ReadResponse(from, nil)
		if err != nil || resp.StatusCode != 103 || resp.Header.Get("Link") != fmt.Sprintf("</%d>; rel=preload", i) || resp.Header.Get("RateLimit") != "" {
			t.Fatalf("got %+v (%v), want hint %d", resp, err, i)
		}
	}
	if resp, err := http.ReadResponse(from, nil); err != nil || resp.StatusCode != 200 || len(resp.Header["Link"]) != 1 || resp.Header.Get("Ratelimit") == "" {
		t.Errorf("got %+v (%v), want the answer with our fields", resp, err)
	}
}

func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type call struct {
			took time.Duration
			err  error
		}
		const late = 5 * time.Millisecond
		calls := make(chan call, 1)
		n := newNetwork(t)
		stop := n.serve("a:80", func(w http.ResponseWriter, r *http.Request) {
			var status int
			fmt.Sscanf(r.URL.Path, "/%d", &status)
			io.Copy(io.Discard, r.Body)
			time.Sleep(late)
			w.WriteHeader(status)
		})
		p := n.gate(proxy.Config{Observe: func(took time.Duration, err error) { calls <- call{took, err} }}, proxy.Health{}, "a:80")
		defer p.Close()
		for status, failed := range map[int]bool{200: false, 304: false, 404: false, 429: true, 500: true, 501: false, 503: true} {
			ask(p, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/%d", status), nil))
			if c := receive(t, calls, "observation"); (c.err != nil) != failed || c.took != late {
				t.Errorf("status %d: observed %v, %v; want %v and that it failed: %v", status, c.took, c.err, late, failed)
			}
		}
		// A client that takes its time does not make the upstream slow.
		defer n.serve("front:80", p.ServeHTTP)()
		conn := n.connect("front:80")
		defer conn.Close()
		io.WriteString(conn, "POST /200 HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n")
		time.Sleep(200 * time.Millisecond)
		io.WriteString(conn, strings.Repeat("x", 200000))
		if _, err := http.ReadResponse(conn.Reader, nil); err != nil {
			t.Fatal(err)
		}
		if c := receive(t, calls, "observation"); c.err != nil || c.took != late {
			t.Errorf("observed %v (%v) of a request whose body took 200ms, want %v", c.took, c.err, late)
		}
		stop()
		ask(p, getRequest())
		if c := receive(t, calls, "observation"); c.err == nil {
			t.Error("an upstream that is down: observed no error")
		}
	})
}

// Waiting requests have a bounded number of slots, and free them when their clients disconnect.
func TestDelayed(t *testing.T) {
	reached := make(chan struct{}, 10)
	upstream := serve(t, func(http.ResponseWriter, *http.Request) { reached <- struct{}{} })
	mw := queued(t, httplimit.Config{MaxDelayed: 1})
	front := serveProxy(t, upstream, mw, proxy.Config{})
	get(t, front)
	receive(t, reached, "the first request")
	conn, _ := dial(t, front)
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	until(t, "it waits", func() bool { now, _ := mw.Delayed(); return now == 1 })
	if resp, _ := get(t, front); resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("one more: got %d with Retry-After %q, want a denial at once", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	conn.Close()
	until(t, "its place is free", func() bool { now, refused := mw.Delayed(); return now == 0 && refused == 1 })
	if len(reached) != 0 {
		t.Error("a request came to the upstream whose client has gone")
	}
}

// An upstream may answer before it has read the body, and the client is told so while it
// still sends.
func TestUpstreamAnswersEarly(t *testing.T) {
	front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) }), 1, proxy.Config{})
	conn, from := dial(t, front)
	io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\nbegun")
	if resp, err := http.ReadResponse(from, nil); err != nil || resp.StatusCode != 401 {
		t.Errorf("got %v (%v), want 401", resp, err)
	}
}
