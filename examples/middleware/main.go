// SPDX-License-Identifier: Apache-2.0

// This program is a web server that limits its clients: 5 requests at once for
// each address, and then one a second; and uploads by limits of their route, too:
// each address 2 an hour, and all of them 1000. Try it:
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
	"github.com/metehq/mete/policy"
)

const rules = `{"name": "visitors", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 1, "burst": 5}}`

// newHandler returns the site with the limiter in front of it.
func newHandler(limiter *mete.Limiter) (http.Handler, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello") })

	limited, err := httplimit.New(limiter, httplimit.Config{})
	if err != nil {
		return nil, err
	}
	uploads, err := newUploads(limiter)
	if err != nil {
		return nil, err
	}
	// Not mux.Handle, behind limited: the policy would be charged twice.
	site := http.NewServeMux()
	site.Handle("POST /uploads", uploads)
	site.Handle("/", limited.Wrap(mux))
	return site, nil
}

// newUploads returns the handler of a route with limits of its own. They are
// charged together with the policy, or not at all.
func newUploads(limiter *mete.Limiter) (http.Handler, error) {
	limited, err := httplimit.New(limiter, httplimit.Config{},
		httplimit.Limit{Name: "uploads", Rate: "2/1h", Burst: 2, Key: httplimit.ByAddress()},
		httplimit.Limit{Name: "all-uploads", Rate: "1000/1h", Burst: 1000, Key: httplimit.Everyone()})
	if err != nil {
		return nil, err
	}
	return limited.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "thank you") })), nil
}

func newLimiter() (*mete.Limiter, error) {
	matcher, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		return nil, err
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		return nil, err
	}
	return mete.New(store, matcher, mete.Config{})
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
