// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/proxy"
)

func TestUpstreamDown(t *testing.T) {
	dead := httptest.NewServer(nil)
	dead.Close()
	var errs counter
	front := start(t, dead.URL, 2, proxy.Config{OnError: errs.onError})
	for range 2 { // admitted, and so charged
		resp, body := get(t, front)
		wantProblem(t, resp, body, 502)
		if strings.Contains(body, "127.0.0.1") || resp.Header.Get("RateLimit") == "" {
			t.Errorf("got %s with RateLimit %q, want no address and our field", body, resp.Header.Get("RateLimit"))
		}
	}
	if resp, _ := get(t, front); resp.StatusCode != 429 {
		t.Errorf("after 2 of 2 tokens: got %d, want 429", resp.StatusCode)
	}
	if got := errs.n.Load(); got != 2 {
		t.Errorf("OnError was called %d times, want 2", got)
	}
}

func TestUpstreamBreaksOff(t *testing.T) {
	front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/midway" {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "some")
			w.(http.Flusher).Flush()
		}
		panic(http.ErrAbortHandler)
	}), 5, proxy.Config{})
	resp, body := get(t, front+"/at-once")
	wantProblem(t, resp, body, 502)

	resp, err := http.Get(front + "/midway")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) || string(text) != "some" {
		t.Errorf("broken off midway: got %q and error %v, want an unexpected end", text, err)
	}
}

func TestUpstreamSlow(t *testing.T) {
	done := make(chan struct{})
	defer close(done)
	var errs counter
	front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
		}
	}), 5, proxy.Config{HeaderTimeout: 20 * time.Millisecond, OnError: errs.onError})
	resp, body := get(t, front)
	wantProblem(t, resp, body, 504)
	if got := errs.n.Load(); got != 1 {
		t.Errorf("OnError was called %d times, want once", got)
	}
}

func TestUpstreamDoesNotConnect(t *testing.T) {
	// A listener with a full backlog still completes TCP handshakes, so TLS is the step that waits.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	resp, body := get(t, start(t, "https://"+l.Addr().String(), 5, proxy.Config{DialTimeout: 20 * time.Millisecond}))
	wantProblem(t, resp, body, 504)
}

func TestClientGone(t *testing.T) {
	arrived, ended := make(chan struct{}), make(chan struct{})
	var errs counter
	p := newProxy(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(ended)
	}), middleware(t, 5, httplimit.Config{}), proxy.Config{OnError: errs.onError})
	server := httptest.NewServer(p)
	defer server.Close()
	front := server.URL
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, front, nil)
		_, err := http.DefaultClient.Do(req)
		failed <- err
	}()
	receive(t, arrived, "request at the upstream")
	cancel()
	receive(t, ended, "end of the request at the upstream")
	if err := receive(t, failed, "error of the client"); !errors.Is(err, context.Canceled) {
		t.Errorf("client: got error %v, want %v", err, context.Canceled)
	}
	until(t, "the request is over", func() bool { return p.Stats()[0].Servers[0].InFlight == 0 })
	if s := p.Stats()[0].Servers[0]; s.Errors != 0 {
		t.Errorf("the server has %d errors: it is not to blame", s.Errors)
	}
	if got := errs.n.Load(); got != 0 {
		t.Errorf("OnError was called %d times, want never", got)
	}
}

func TestServerEndsItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.serve("a:80", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })()
		p := n.gate(proxy.Config{}, proxy.Health{}, "a:80")
		defer p.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // when it has reached the upstream
		defer cancel()
		w := ask(p, getRequest().WithContext(ctx))
		wantProblem(t, w.Result(), w.Body.String(), 504)
	})
}

func TestBodyBound(t *testing.T) {
	front := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err == nil && n != 1000 {
			t.Errorf("the upstream got %d bytes", n)
		}
	}), 100, proxy.Config{MaxBodyBytes: 1000})
	for _, tt := range []struct {
		size     int
		declared bool
		want     int
	}{{1000, true, 200}, {1000, false, 200}, {1001, true, 413}, {1001, false, 413}} {
		var body io.Reader = strings.NewReader(strings.Repeat("x", tt.size))
		if !tt.declared {
			body = io.MultiReader(body)
		}
		resp, err := http.Post(front, "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("%d bytes, declared %v: got %d %s, want %d", tt.size, tt.declared, resp.StatusCode, text, tt.want)
		} else if tt.want == 413 {
			wantProblem(t, resp, string(text), 413)
		}
	}
}

func TestNoGoroutineLeaks(t *testing.T) {
	before := runtime.NumGoroutine()
	func() {
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }))
		defer upstream.Close()
		target, err := url.Parse(upstream.URL)
		if err != nil {
			t.Fatal(err)
		}
		p, err := proxy.New(target, middleware(t, 5, httplimit.Config{}), proxy.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		front := httptest.NewServer(p)
		defer front.Close()
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		for range 8 {
			resp, err := client.Get(front.URL)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for runtime.NumGoroutine() > before {
		select {
		case <-tick.C:
		case <-ctx.Done():
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}
