// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
)

// failures is a middleware with a limit of the responses 401, such as "rate": "5/1d", "burst": 5.
func failures(t testing.TB, limit string) *httplimit.Middleware {
	t.Helper()
	return ruledBy(t, `"charge_on": {"status": [401]}, `+limit)
}

// ruledBy is a middleware with one rule of these fields for all requests.
func ruledBy(t testing.TB, fields string) *httplimit.Middleware {
	t.Helper()
	m, err := policy.Load(fmt.Appendf(nil, `{"rules": [{"name": "all", "limit_keys": [], "deadline": "10s", %s}]}`, fields), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := mete.New(store, m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := httplimit.New(limiter, httplimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return mw
}

// A crowd counts the statuses that its clients get.
type crowd struct {
	client   *http.Client
	all      sync.WaitGroup
	mu       sync.Mutex
	statuses map[int]int
}

// send starts a client with a number of requests. path returns the path of each request.
func (c *crowd) send(t *testing.T, requests int, path func(i int) string) {
	c.all.Go(func() {
		for i := range requests {
			resp, err := c.client.Get("http://front" + path(i))
			if err != nil {
				t.Error(err)
				return
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			c.mu.Lock()
			c.statuses[resp.StatusCode]++
			c.mu.Unlock()
		}
	})
}

func (c *crowd) want(t *testing.T, want map[int]int) {
	t.Helper()
	if c.all.Wait(); !maps.Equal(c.statuses, want) {
		t.Errorf("got %v, want %v", c.statuses, want)
	}
}

// TestChargeOn_FastLimitUnderLoad sends 1000 requests per second through the gateway. Each lasts 50 ms, and the limit allows
// 100 failures per second. In 50 ms the bucket refills more than a request costs, and still each success returns its token: none
// is denied. 20 requests per second fail. Then all fail, and the limit admits its burst and its rate.
func TestChargeOn_FastLimitUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		defer n.serve("a:80", func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(50 * time.Millisecond) // of the bubble's clock
			if r.URL.Path == "/wrong" {
				w.WriteHeader(http.StatusUnauthorized)
			}
		})()
		p := n.gateBy(failures(t, `"rate": "100/1s", "burst": 100`), proxy.Config{}, proxy.Health{}, "a:80")
		defer p.Close()
		defer n.serve("front:80", p.ServeHTTP)()
		c := crowd{client: n.client(), statuses: map[int]int{}}
		for k := range 50 {
			c.send(t, 20, func(i int) string {
				if k%2 == 0 && i == k%20 {
					return "/wrong"
				}
				return "/right"
			})
		}
		c.want(t, map[int]int{http.StatusOK: 975, http.StatusUnauthorized: 25})

		time.Sleep(2 * time.Second) // the bucket is full
		clear(c.statuses)
		for range 200 {
			c.send(t, 1, func(int) string { return "/wrong" })
		}
		c.want(t, map[int]int{http.StatusUnauthorized: 100, http.StatusTooManyRequests: 100})
	})
}

// TestChargeOn_ParallelGuesses sends 64 guesses through the gateway before any outcome is known. A limit of five admits five.
func TestChargeOn_ParallelGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, decided := newNetwork(t), make(chan struct{})
		defer n.serve("a:80", func(w http.ResponseWriter, r *http.Request) {
			<-decided
			w.WriteHeader(http.StatusUnauthorized)
		})()
		p := n.gateBy(failures(t, `"rate": "5/1d", "burst": 5`), proxy.Config{}, proxy.Health{}, "a:80")
		defer p.Close()
		defer n.serve("front:80", p.ServeHTTP)()
		c := crowd{client: n.client(), statuses: map[int]int{}}
		for range 64 {
			c.send(t, 1, func(int) string { return "/" })
		}
		synctest.Wait()
		if denied := c.statuses[http.StatusTooManyRequests]; denied != 59 {
			t.Errorf("%d guesses were denied while the others wait, want 59", denied)
		}
		close(decided)
		c.want(t, map[int]int{http.StatusUnauthorized: 5, http.StatusTooManyRequests: 59})
	})
}
