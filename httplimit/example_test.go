// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// exampleLimiter lets each key have two requests at once and one an hour.
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

// Limit by the client's address, and name the proxies that may say what it is.
// What a client writes into the header itself changes nothing.
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

// DO NOT DO THIS: a key that the client writes is no limit. Whoever sends
// another X-Forwarded-For with each request has a new bucket each time. The same
// goes for trusting proxies that are none (New refuses 0.0.0.0/0), for
// TrustedHops where clients can reach the program directly, and for any header
// that nothing has verified.
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
