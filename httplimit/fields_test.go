// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/storetest"
)

// dialects are all that there are.
var dialects = []string{"draft-11", "legacy", "x"}

// limitedOnce is a middleware with a clock of its own, that stands still.
func limitedOnce(t *testing.T, config httplimit.Config) *httplimit.Middleware {
	return newMiddleware(t, newLimiter(t, storetest.NewModel(new(clock).instant), byKey), config)
}

// byKey lets each API key have two requests at once.
const byKey = `{"name": "free", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket",
	"algorithm_config": {"rps": 0.5, "burst": 2}}`

// ask sends a request with that API key.
func ask(t *testing.T, server *httptest.Server, key string) *http.Response {
	t.Helper()
	r, err := http.NewRequest("GET", server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", key)
	res, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res
}

// fieldsOf returns the values of every field whose name has "ratelimit" in it, in any spelling.
func fieldsOf(h http.Header) map[string][]string {
	found := map[string][]string{}
	for name, values := range h {
		if name := strings.ToLower(name); strings.Contains(name, "ratelimit") {
			found[name] = append(found[name], values...)
		}
	}
	return found
}

// A handler reads, replaces and deletes the fields with the methods of http.Header. No field is sent twice, in
// HTTP/1, HTTP/2 and a ResponseRecorder.
func TestWrap_HandlerReplacesFields(t *testing.T) {
	handler := limitedOnce(t, httplimit.Config{Fields: dialects}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		for _, name := range []string{"RateLimit", "RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
			"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
			if h.Get(name) == "" {
				t.Errorf("the handler does not find %s in %v", name, h)
			}
		}
		h.Set("RateLimit-Policy", `"mine";q=1;w=1`)
		h.Set("RateLimit", `"mine";r=1;t=1`)
		h.Set("X-RateLimit-Limit", "77")
		h.Del("RateLimit-Reset")
		io.WriteString(w, "hello")
	}))
	check := func(what string, h http.Header) {
		t.Helper()
		got := fieldsOf(h)
		for name, want := range map[string]string{
			"ratelimit-policy": `["\"mine\";q=1;w=1"]`, "ratelimit": `["\"mine\";r=1;t=1"]`, "x-ratelimit-limit": `["77"]`, "ratelimit-reset": "[]",
			"ratelimit-limit": `["2"]`, "ratelimit-remaining": `["1"]`, "x-ratelimit-remaining": `["1"]`,
		} {
			if all := fmt.Sprintf("%q", got[name]); all != want {
				t.Errorf("%s: %s is %s, want %s", what, name, all, want)
			}
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Api-Key", "k-recorder")
	check("recorder", serve(handler, r).Header())
	for _, http2 := range []bool{false, true} {
		server := httptest.NewUnstartedServer(handler)
		server.EnableHTTP2 = http2
		server.StartTLS()
		res := ask(t, server, fmt.Sprint("k-", http2))
		check(res.Proto, res.Header)
		server.Close()
	}
}

// A ReverseProxy behind a middleware sends the fields of the middleware, and none of its
// upstream, with RemoveFields.
func TestRemoveFields_ReverseProxy(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range []string{"RateLimit", "RateLimit-Policy", "RateLimit-Remaining", "X-RateLimit-Limit", "X-RateLimit-Reason", "X-RateLimit-Warning"} {
			w.Header()[name] = []string{"theirs"}
		}
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Cache-Control", "private")
	}))
	defer upstream.Close()
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	inner := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, ModifyResponse: httplimit.RemoveFields}
	server := httptest.NewServer(limitedOnce(t, httplimit.Config{}).Wrap(inner))
	defer server.Close()
	res := ask(t, server, "k1")
	want := `map["ratelimit":["\"free\";r=1;t=2"] "ratelimit-limit":["2"] "ratelimit-policy":["\"free\";q=2;w=4"] "ratelimit-remaining":["1"] "ratelimit-reset":["2"]]`
	if got := fmt.Sprintf("%q", fieldsOf(res.Header)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := res.Header.Get("Retry-After") + res.Header.Get("Cache-Control"); got != "7private" {
		t.Errorf("the upstream's Retry-After and Cache-Control are %q, want them kept", got)
	}
}

// A handler that sends an informational answer keeps the fields for the final one.
func TestWrap_EarlyHints(t *testing.T) {
	server := httptest.NewServer(limitedOnce(t, httplimit.Config{}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		io.WriteString(w, "done")
	})))
	defer server.Close()
	res := ask(t, server, "k1")
	if got := res.Header.Values("RateLimit"); res.StatusCode != 200 || len(got) != 1 || got[0] != `"free";r=1;t=2` {
		t.Errorf("got status %d and RateLimit %q, want 200 and our field once", res.StatusCode, got)
	}
}
