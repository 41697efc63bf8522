// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// exampleLimiter gives each key one request per hour, with bursts of up to two.
func exampleLimiter(key string) *mete.Limiter {
	matcher, err := policy.Load([]byte(`{
		"name": "free",
		"limit_keys": ["`+key+`"],
		"algorithm": "token_bucket",
		"algorithm_config": {"rate": "1/1h", "burst": 2}
	}`), policy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := mete.New(store, matcher, mete.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return limiter
}

// send sends a request that the proxy at 10.0.0.5 has got from 203.0.113.9,
// with what that client has put into its X-Forwarded-For.
func send(handler http.Handler, spoofed string) {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.0.0.5:40000"
	r.Header.Set("X-Forwarded-For", spoofed+", 203.0.113.9")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	fmt.Println(w.Code, "left:", w.Header().Get("RateLimit-Remaining"))
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello") })

// Each client address gets 100 requests per minute, with bursts of up to 2.
func ExamplePerAddress() {
	mux := http.NewServeMux()
	mux.Handle("/search", httplimit.PerAddress("100/1m", 2).Wrap(hello))

	for range 3 {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", "/search", nil))
		fmt.Println(w.Code, "left:", w.Header().Get("RateLimit-Remaining"))
	}
	// Output:
	// 200 left: 1
	// 200 left: 0
	// 429 left: 0
}

// Each API key gets 100 requests per minute, with bursts of up to 2, over the store of the
// limiter. A request without a key is answered with 403.
func ExampleMust() {
	api := httplimit.Must(routeLimiter(), "api", "100/1m", 2, httplimit.ByHeader("X-API-Key", httplimit.MissingDeny))
	mux := http.NewServeMux()
	mux.Handle("/search", api.Wrap(hello))

	for _, key := range []string{"k1", "k1", "k1", "k2", ""} {
		r := httptest.NewRequest("GET", "/search", nil)
		r.Header.Set("X-API-Key", key)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Print(w.Code, " ")
	}
	// Output: 200 200 429 200 403
}

// Denied replaces the answer to denied requests, and Exempt exempts requests.
func ExampleConfig() {
	api, err := httplimit.New(routeLimiter(), httplimit.Config{
		DisableJitter: true,
		Exempt:        func(r *http.Request) bool { return r.URL.Path == "/healthz" },
		Denied: func(w http.ResponseWriter, r *http.Request, d mete.Decision) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"error":"slow down","limit":%q,"seconds":%s}`, d.Rule, w.Header().Get("Retry-After"))
		},
	}, httplimit.Limit{Name: "api", Rate: "1/1m", Burst: 1, Key: httplimit.ByAddress()})
	if err != nil {
		log.Fatal(err)
	}
	handler := api.Wrap(hello)

	for _, path := range []string{"/", "/", "/healthz"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// 200 hello
	// 429 {"error":"slow down","limit":"api","seconds":60}
	// 200 hello
}

// Limit by the client's address, and set the proxies that may report it. A client's own header has no effect.
func ExampleMiddleware() {
	limited, err := httplimit.New(exampleLimiter("ip:address"), httplimit.Config{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")},
	})
	if err != nil {
		log.Fatal(err)
	}
	handler := limited.Wrap(hello)

	send(handler, "1.1.1.1")
	send(handler, "2.2.2.2")
	send(handler, "3.3.3.3")
	// Output:
	// 200 left: 1
	// 200 left: 0
	// 429 left: 0
}

// DO NOT DO THIS: a key that the client controls is no limit. A client that sends another X-Forwarded-For with
// each request gets a new bucket each time. The same is true for untrusted proxies (New rejects 0.0.0.0/0), for
// TrustedHops if clients can reach the program directly, and for any unverified header.
func ExampleMiddleware_incorrect() {
	limited, err := httplimit.New(exampleLimiter("header:x-forwarded-for"), httplimit.Config{})
	if err != nil {
		log.Fatal(err)
	}
	handler := limited.Wrap(hello)

	send(handler, "1.1.1.1")
	send(handler, "2.2.2.2")
	send(handler, "3.3.3.3")
	// Output:
	// 200 left: 1
	// 200 left: 1
	// 200 left: 1
}
