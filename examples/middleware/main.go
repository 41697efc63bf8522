// SPDX-License-Identifier: Apache-2.0

// This program is a web server with a limit per route. Each address gets bursts of 5 pages, and then one per second. Each
// API key gets 100 searches per minute, with bursts of up to 20. Uploads have two limits: 2 per hour per address, and 1000
// per hour in total. Try it:
//
//	go run ./examples/middleware
//	for i in $(seq 7); do curl -si http://127.0.0.1:8000/ | grep -iE '^(HTTP|RateLimit:|Retry)'; done
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
)

// newHandler returns the site. The store of limiter holds its buckets.
func newHandler(limiter *mete.Limiter) (http.Handler, error) {
	pages := httplimit.Must(limiter, "pages", "1/1s", 5, httplimit.ByAddress())
	search := httplimit.Must(limiter, "search", "100/1m", 20, httplimit.ByHeader("X-API-Key", httplimit.MissingDeny))
	uploads, err := httplimit.New(limiter, httplimit.Config{}, // both limits are charged, or none
		httplimit.Limit{Name: "uploads", Rate: "2/1h", Burst: 2, Key: httplimit.ByAddress()},
		httplimit.Limit{Name: "all-uploads", Rate: "1000/1h", Burst: 1000, Key: httplimit.Everyone()})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", pages.Wrap(respond("hello")))
	mux.Handle("GET /search", search.Wrap(respond("found")))
	mux.Handle("POST /uploads", uploads.Wrap(respond("thank you")))
	return mux, nil
}

func respond(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, text) })
}

// newLimiter returns a limiter in memory. Servers that share limits use redisstore or pgstore instead.
func newLimiter() (*mete.Limiter, error) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		return nil, err
	}
	return mete.New(store, nil, mete.Config{})
}

func main() {
	limiter, err := newLimiter()
	if err != nil {
		log.Fatal(err)
	}
	handler, err := newHandler(limiter)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8000", Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}
