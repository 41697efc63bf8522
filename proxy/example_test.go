// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
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

func ExampleNewRouted() {
	answer := func(name string) *url.URL {
		backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, name)
		}))
		at, err := url.Parse(backend.URL)
		if err != nil {
			log.Fatal(err)
		}
		return at
	}
	m, err := policy.Load([]byte(`{"rules": [{"name": "clients", "limit_keys": ["ip:address"],
		"algorithm": "token_bucket", "algorithm_config": {"rps": 10, "burst": 20}}]}`), policy.Options{})
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
	gate, err := proxy.NewRouted([]proxy.Upstream{
		{Name: "app", Servers: []*url.URL{answer("app"), answer("app")}, Health: proxy.Health{Path: "/healthz"}},
		{Name: "files", Servers: []*url.URL{answer("files")}},
	}, []proxy.Route{
		{Upstream: "app"},
		{Path: "/files", Upstream: "files"},
	}, limited, proxy.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer gate.Close()
	watching, stop := context.WithCancel(context.Background())
	defer stop()
	go gate.Watch(watching) // the health checks
	front := httptest.NewServer(gate)
	defer front.Close()

	for _, path := range []string{"/", "/files/a.txt"} {
		resp, err := http.Get(front.URL + path)
		if err != nil {
			log.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Printf("%s %s\n", path, text)
	}
	// Output:
	// / app
	// /files/a.txt files
}
