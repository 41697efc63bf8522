// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
	"github.com/metehq/mete/storetest"
)

// patience is how long a test waits for what should come at once.
const patience = time.Minute

func middleware(t testing.TB, burst int, config httplimit.Config) *httplimit.Middleware {
	t.Helper()
	m, err := policy.Load(fmt.Appendf(nil, `{"rules": [{"name": "all", "limit_keys": [], "algorithm": "token_bucket",
		"algorithm_config": {"rps": 1, "burst": %d}}]}`, burst), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	frozen := func() bucket.Instant { return 1_700_000_000_000_000 }
	lim, err := mete.New(storetest.NewModel(frozen), m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := httplimit.New(lim, config)
	if err != nil {
		t.Fatal(err)
	}
	return mw
}

// start serves a proxy with burst tokens in front of upstream, and returns its
// URL.
func start(t testing.TB, upstream string, burst int, config proxy.Config) string {
	t.Helper()
	return serveProxy(t, upstream, middleware(t, burst, httplimit.Config{}), config)
}

// serveProxy serves a proxy with mw in front of upstream, and returns its URL.
func serveProxy(t testing.TB, upstream string, mw *httplimit.Middleware, config proxy.Config) string {
	t.Helper()
	front := httptest.NewServer(newProxy(t, upstream, mw, config))
	t.Cleanup(front.Close)
	return front.URL
}

func newProxy(t testing.TB, upstream string, mw *httplimit.Middleware, config proxy.Config) *proxy.Proxy {
	t.Helper()
	target, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(target, mw, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// serve serves h as an upstream and returns its URL.
func serve(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// get returns the answer and its body.
func get(t testing.TB, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// receive waits for a value.
func receive[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: nothing within %v", what, patience)
		panic("unreachable")
	}
}

// counter counts errors.
type counter struct{ n atomic.Int64 }

func (c *counter) onError(*http.Request, error) { c.n.Add(1) }
