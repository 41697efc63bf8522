// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
)

func Example() {
	// The server to protect.
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "hello")
	}))
	defer backend.Close()

	m, err := policy.Load([]byte(`{"rules": [{"name": "clients", "limit_keys": ["ip:address"],
		"algorithm": "token_bucket", "algorithm_config": {"rps": 0.1, "burst": 2}}]}`), policy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := mete.New(store, m, mete.Config{})
	if err != nil {
		log.Fatal(err)
	}
	limited, err := httplimit.New(limiter, httplimit.Config{})
	if err != nil {
		log.Fatal(err)
	}
	upstream, err := url.Parse(backend.URL)
	if err != nil {
		log.Fatal(err)
	}
	gate, err := proxy.New(upstream, limited, proxy.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer gate.Close()
	front := httptest.NewServer(gate) // or http.ListenAndServe
	defer front.Close()

	for range 3 {
		resp, err := http.Get(front.URL)
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Println(resp.Status, resp.Header.Get("RateLimit-Remaining"))
	}
	// Output:
	// 200 OK 1
	// 200 OK 0
	// 429 Too Many Requests 0
}
