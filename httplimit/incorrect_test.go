// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
)

// perHour is a bucket of n tokens, and n an hour.
func perHour(n bucket.Tokens) bucket.Limit {
	limit, err := bucket.NewLimit(n*bucket.Token, bucket.Rate{Tokens: n * bucket.Token, Per: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	return limit
}

// routeLimiter has no policy: routes bring their limits.
func routeLimiter() *mete.Limiter {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return limiter
}

func status(handler http.Handler) int {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("POST", "/uploads", nil))
	return w.Code
}

// Each route brings limits with a name and a key, charged together.
func ExampleLimit() {
	uploads, err := httplimit.New(routeLimiter(), httplimit.Config{},
		httplimit.Limit{Name: "uploads", Rate: "2/1h", Burst: 2, Key: httplimit.ByAddress()},
		httplimit.Limit{Name: "all-uploads", Rate: "1000/1h", Burst: 1000, Key: httplimit.Everyone()})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /uploads", uploads.Wrap(hello))
	fmt.Println(status(mux), status(mux), status(mux))
	// Output: 200 200 429
}

// DO NOT DO THIS: a middleware around everything, and the same one around a
// route. Every upload is charged twice, and of four an hour two get through. Give
// the route what it needs in one New, and leave it out of the other.
func ExampleMiddleware_incorrectTwice() {
	limited, err := httplimit.New(routeLimiter(), httplimit.Config{},
		httplimit.Limit{Name: "uploads", Rate: "4/1h", Burst: 4, Key: httplimit.ByAddress()})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /uploads", limited.Wrap(hello))
	handler := limited.Wrap(mux)
	fmt.Println(status(handler), status(handler), status(handler))
	// Output: 200 200 429
}

// DO NOT DO THIS: peek first, and charge failures afterwards. All concurrent requests see the same bucket: here
// ten guesses of a password pass a limit of three. Charge first, with the middleware, and refund successes
// ([mete.Limiter.Refund]).
func ExampleMiddleware_incorrectCheckThenCharge() {
	limiter := routeLimiter()
	attempt := mete.Request{Charges: []mete.Charge{{Key: "login:alice", Limit: perHour(3), Cost: 1}}}
	ctx := httptest.NewRequest("POST", "/login", nil).Context()
	passed := 0
	for range 10 { // all arrive before the first one is answered
		if d, err := limiter.Peek(ctx, attempt); err == nil && d.Allowed {
			passed++
		}
	}
	for range passed {
		limiter.Take(ctx, attempt) // the password was wrong
	}
	fmt.Println(passed, "guesses")
	// Output: 10 guesses
}
