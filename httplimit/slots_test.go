// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/internal/faulttest"
)

const concurrent = `"algorithm": "concurrency",`

// awaitFree waits until n slots are free.
func awaitFree(t *testing.T, l *mete.Limiter, n bucket.Tokens) {
	t.Helper()
	faulttest.Eventually(t, "the slots are free", func() error {
		if got := left(t, l); got != n*bucket.Token {
			return fmt.Errorf("%v slots are free, want %v", got, n)
		}
		return nil
	})
}

// A request holds its slot until its response has ended, however it ends.
func TestSlots_UntilTheEnd(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"nothing is sent": func(http.ResponseWriter, *http.Request) {},
		"a body":          func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "done") },
		"a stream": func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				io.WriteString(w, "part")
				w.(http.Flusher).Flush()
			}
		},
		"a panic": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		mw, limiter := observed(t, concurrent, `"max": 2, "lease": "30s"`, nil)
		server := httptest.NewServer(mw.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := left(t, limiter); got != bucket.Token {
				t.Errorf("%s: %v slots are free during the request, want 1", name, got)
			}
			handler(w, r)
		})))
		for range 5 {
			resp, err := http.Get(server.URL)
			if err != nil {
				awaitFree(t, limiter, 2)
				continue
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK || resp.Header.Get("RateLimit-Policy") != `"guesses";q=2` || resp.Header.Get("RateLimit") != `"guesses";r=1;t=30` {
				t.Errorf("%s: %d %v", name, resp.StatusCode, resp.Header)
			}
		}
		if got := left(t, limiter); got != 2*bucket.Token { // a client that has the response never waits for its slot
			t.Errorf("%s: %v slots are free afterwards, want 2", name, got)
		}
		server.Close()
	}
}

// While all slots are held, requests are denied. A client that disconnects frees its slot when its handler returns.
func TestSlots_DeniedAndGone(t *testing.T) {
	mw, limiter := observed(t, concurrent, `"max": 1, "lease": "30s"`, nil)
	started := make(chan struct{})
	server := httptest.NewServer(mw.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
	})))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		req, _ := http.NewRequestWithContext(ctx, "GET", server.URL, nil)
		_, _ = http.DefaultClient.Do(req)
	}()
	<-started
	resp, err := http.Get(server.URL)
	if err != nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("X-RateLimit-Reason") != "concurrency_exceeded" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a second request: %v %v", resp, err)
	}
	cancel()
	awaitFree(t, limiter, 1)
}

// A hijacked connection holds the slot until it is closed, after its handler has returned.
func TestSlots_Hijack(t *testing.T) {
	mw, limiter := observed(t, concurrent, `"max": 1, "lease": "30s"`, nil)
	conns := make(chan net.Conn, 1)
	server := httptest.NewServer(mw.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(buffered, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
		buffered.Flush()
		conns <- conn
	})))
	defer server.Close()
	client, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	conn := <-conns
	if got := left(t, limiter); got != 0 {
		t.Errorf("%v slots are free while the connection is open", got)
	}
	conn.Close()
	conn.Close()
	awaitFree(t, limiter, 1)
}

// A response that takes longer than the lease keeps its slot. Without Run, the slot ends with its lease.
func TestSlots_LongResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mw, limiter := observed(t, concurrent, `"max": 1, "lease": "30s"`, nil)
		mw.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			for range 20 {
				time.Sleep(29 * time.Second)
				if left(t, limiter) != 0 {
					t.Error("the slot has ended before the response")
				}
			}
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		if left(t, limiter) != bucket.Token {
			t.Error("the slot is held after the response")
		}
		r := httptest.NewRequest("GET", "/", nil)
		admission, ok := mw.Admit(httptest.NewRecorder(), r)
		if !ok || left(t, limiter) != 0 {
			t.Fatal("not admitted with a slot")
		}
		admission.Run(r, func() httplimit.Response {
			time.Sleep(time.Minute)
			if left(t, limiter) != 0 {
				t.Error("the slot has ended before the response of the framework")
			}
			return httplimit.Response{}
		})
		if left(t, limiter) != bucket.Token {
			t.Error("the slot is held after the response of the framework")
		}
		if _, ok := mw.Admit(httptest.NewRecorder(), r); !ok || left(t, limiter) != 0 {
			t.Fatal("not admitted with a slot")
		}
		time.Sleep(31 * time.Second)
		if left(t, limiter) != bucket.Token {
			t.Error("a slot without Run is held after its lease")
		}
	})
}
