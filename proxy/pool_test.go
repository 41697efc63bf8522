// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/proxy"
)

// named answers with a name.
func named(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, name)
	}
}

// A server that has many requests in flight gets fewer.
func TestPool_LeastInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		var slow, fast atomic.Int64
		defer n.serve("slow:80", func(http.ResponseWriter, *http.Request) { slow.Add(1); time.Sleep(10 * time.Second) })()
		defer n.serve("fast:80", func(http.ResponseWriter, *http.Request) { fast.Add(1) })()
		p := n.gate(proxy.Config{}, proxy.Health{}, "slow:80", "fast:80")
		defer p.Close()
		var wait sync.WaitGroup
		for range 100 {
			wait.Go(func() { ask(p, getRequest()) })
			synctest.Wait()
		}
		// With one request in flight there, the slow one is drawn twice in a row in one
		// of four times.
		if slow.Load() > 45 || slow.Load() == 0 || slow.Load()+fast.Load() != 100 {
			t.Errorf("the slow server got %d requests and the fast one %d, want most at the fast one", slow.Load(), fast.Load())
		}
		if s := p.Stats()[0].Servers[0]; s.InFlight != slow.Load() || !s.Up || s.Server != "http://slow:80" {
			t.Errorf("got %+v, want %d in flight", s, slow.Load())
		}
		wait.Wait()
		if s := p.Stats()[0].Servers[0]; s.InFlight != 0 || s.Answers[2] != uint64(slow.Load()) {
			t.Errorf("in the end got %+v", s)
		}
	})
}

// A server that cannot be connected to is excluded, longer each time, and then probed by one request. Meanwhile
// the others respond.
func TestPool_LeavesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.serve("b:80", named("b"))()
		var log bytes.Buffer
		p := n.gate(proxy.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, proxy.Health{}, "a:80", "b:80")
		defer p.Close()
		load := func(d time.Duration) (byA int) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				switch w := ask(p, getRequest()); {
				case w.Code != 200:
					t.Errorf("while b is up: got %d %s", w.Code, w.Body)
				case w.Body.String() == "a":
					byA++
				}
			}
			return byA
		}
		load(time.Minute) // tries at 0, 1, 3, 7, 15, 31 s
		if got := n.dials("a:80"); got < 5 || got > 7 {
			t.Errorf("a was dialed %d times in a minute, want about 6", got)
		}
		if s := p.Stats()[0].Servers[0]; s.Up || s.Changes != 1 || s.Errors != uint64(n.dials("a:80")) {
			t.Errorf("got %+v, want it down", s)
		}
		defer n.serve("a:80", named("a"))()
		if got := load(time.Minute); got < 200 {
			t.Errorf("after a came up it got %d of 1200 requests", got)
		}
		if s := p.Stats()[0].Servers[0]; !s.Up || s.Changes != 2 {
			t.Errorf("got %+v, want it up", s)
		}
		if got := strings.Count(log.String(), "\n"); got != 2 {
			t.Errorf("the log has %d lines, want one for each change:\n%s", got, log.String())
		}
	})
}

// Many concurrent failures count as one: the server is excluded for a second, not for half a minute.
func TestPool_ManyFailTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.serve("b:80", named("b"))()
		p := n.gate(proxy.Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(100 * time.Millisecond)
			return n.dial(ctx, network, address)
		}}, proxy.Health{}, "a:80", "b:80")
		defer p.Close()
		var wait sync.WaitGroup
		for range 50 {
			wait.Go(func() {
				if w := ask(p, getRequest()); w.Code != 200 {
					t.Errorf("got %d %s", w.Code, w.Body)
				}
			})
		}
		wait.Wait()
		if n.dials("a:80") < 10 {
			t.Errorf("%d tried the server that is down: this test shows nothing", n.dials("a:80"))
		}
		defer n.serve("a:80", named("a"))()
		time.Sleep(1500 * time.Millisecond)
		byA := 0
		for range 100 {
			if ask(p, getRequest()).Body.String() == "a" {
				byA++
			}
		}
		if byA == 0 {
			t.Error("after a second, nobody has tried the server again")
		}
	})
}

// If no server is up, the response is immediate and differs from a denial.
func TestPool_AllDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		p := n.gate(proxy.Config{}, proxy.Health{}, "a:80", "b:80")
		defer p.Close()
		w := ask(p, getRequest()) // both are tried
		wantProblem(t, w.Result(), w.Body.String(), 502)
		for range 10 {
			w := ask(p, getRequest())
			wantProblem(t, w.Result(), w.Body.String(), 503)
			if got := w.Header().Get("Retry-After"); got != "1" && got != "2" || w.Header().Get("X-RateLimit-Reason") != "" || strings.Contains(w.Body.String(), ":80") {
				t.Errorf("got Retry-After %q, reason %q, %s", got, w.Header().Get("X-RateLimit-Reason"), w.Body)
			}
		}
		if a, b := n.dials("a:80"), n.dials("b:80"); a != 1 || b != 1 {
			t.Errorf("they were dialed %d and %d times, want once each", a, b)
		}
		if s := p.Stats()[0]; s.Unavailable != 10 {
			t.Errorf("got %+v, want 10 unavailable", s)
		}
		defer n.serve("b:80", named("b"))()
		time.Sleep(2 * time.Second)
		if w := ask(p, getRequest()); w.Code != 200 || w.Body.String() != "b" {
			t.Errorf("when b is up: got %d %s", w.Code, w.Body)
		}
	})
}

// Only one request probes a server after its exclusion.
func TestPool_OneTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		p := n.gate(proxy.Config{}, proxy.Health{}, "a:80", "b:80")
		defer p.Close()
		ask(p, getRequest())
		time.Sleep(2 * time.Second)
		var wait sync.WaitGroup
		for range 50 {
			wait.Go(func() { ask(p, getRequest()) })
		}
		wait.Wait()
		if a, b := n.dials("a:80"), n.dials("b:80"); a != 2 || b != 2 {
			t.Errorf("they were dialed %d and %d times, want twice each", a, b)
		}
	})
}

// A request whose body has not been read goes to another server, and arrives whole;
// once it has been sent, no other gets it.
func TestPool_Retries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		got := make(chan string, 100)
		defer n.serve("b:80", func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			got <- string(text)
		})()
		p := n.gate(proxy.Config{}, proxy.Health{}, "a:80", "b:80")
		defer p.Close()
		for range 30 { // some of them start at a
			if w := ask(p, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body"))); w.Code != 200 {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
			if text := <-got; text != "body" {
				t.Fatalf("b read %q, want the whole body", text)
			}
			time.Sleep(2 * time.Second)
		}
		if n.dials("a:80") == 0 {
			t.Error("a was never tried")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		var reached atomic.Int64
		breaks := func(w http.ResponseWriter, r *http.Request) {
			reached.Add(1)
			io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler)
		}
		defer n.serve("a:80", breaks)()
		defer n.serve("b:80", breaks)()
		p := n.gate(proxy.Config{}, proxy.Health{}, "a:80", "b:80")
		defer p.Close()
		for i := range 10 {
			w := ask(p, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body")))
			wantProblem(t, w.Result(), w.Body.String(), 502)
			if got := reached.Load(); got != int64(i+1) {
				t.Fatalf("%d requests were sent for %d", got, i+1)
			}
		}
	})
}

// A server that is alone is asked whatever happens.
func TestPool_SingleServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		p := n.gate(proxy.Config{}, proxy.Health{}, "a:80")
		defer p.Close()
		for range 5 {
			w := ask(p, getRequest())
			wantProblem(t, w.Result(), w.Body.String(), 502)
		}
		defer n.serve("a:80", named("a"))()
		if w := ask(p, getRequest()); w.Code != 200 {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		if s := p.Stats()[0].Servers[0]; !s.Up || s.Errors != 5 || s.Changes != 2 {
			t.Errorf("got %+v", s)
		}
	})
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		var sick atomic.Bool
		var checks atomic.Int64
		handler := func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RequestURI() != "/healthz?deep=1" {
				return
			}
			checks.Add(1)
			switch {
			case r.Host != "a:80" || r.UserAgent() != "mete-health":
				t.Errorf("the check was for host %q by %q", r.Host, r.UserAgent())
			case sick.Load():
				w.WriteHeader(http.StatusInternalServerError)
			default:
				w.WriteHeader(http.StatusFound) // which is not followed
			}
		}
		stop := n.serve("a:80", handler)
		var log bytes.Buffer
		health := proxy.Health{Path: "/healthz?deep=1", Interval: time.Second, Down: 3, Up: 2}
		p := n.gate(proxy.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, health, "a:80")
		defer p.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			p.Watch(ctx)
			close(ended)
		}()
		want := func(what string, status int) {
			t.Helper()
			w := ask(p, getRequest())
			if up := p.Stats()[0].Servers[0].Up; w.Code != status || up != (status == 200) {
				t.Errorf("%s: got %d, up %v; want %d", what, w.Code, up, status)
			}
		}
		synctest.Wait()
		want("well", 200)
		if checks.Load() != 1 {
			t.Errorf("%d checks at the beginning, want 1", checks.Load())
		}
		time.Sleep(100 * time.Second)
		if got := checks.Load(); got < 90 || got > 112 {
			t.Errorf("%d checks in 100 s, want about 100", got)
		}
		sick.Store(true)
		time.Sleep(1200 * time.Millisecond)
		want("one check has failed", 200)
		time.Sleep(3 * time.Second)
		want("three have", 503)
		sick.Store(false)
		time.Sleep(3500 * time.Millisecond)
		want("two have succeeded", 200)
		stop()
		time.Sleep(5 * time.Second)
		want("gone", 503)
		defer n.serve("a:80", handler)()
		time.Sleep(5 * time.Second)
		want("back", 200)
		if got := strings.Count(log.String(), "health checks"); got != 4 {
			t.Errorf("the log has %d records of 4 changes:\n%s", got, log.String())
		}
		cancel()
		<-ended
	})
}

// A check that is not answered in time has failed.
func TestWatch_Slow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.serve("a:80", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })()
		p := n.gate(proxy.Config{}, proxy.Health{Path: "/", Timeout: time.Second, Down: 1}, "a:80")
		defer p.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		p.Watch(ctx)
		if s := p.Stats()[0].Servers[0]; s.Up || s.InFlight != 0 {
			t.Errorf("got %+v, want it down", s)
		}
	})
}
