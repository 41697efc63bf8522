// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

func Example() {
	server := exampleServer()
	defer server.Close()

	c, err := client.New(server.URL, nil)
	if err != nil {
		log.Fatal(err)
	}
	req := client.Request{
		Attributes: map[string]string{"header:x-api-key": "k1"},
		Cost:       3,
	}
	for range 2 {
		d, err := c.Take(context.Background(), req)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.Allowed, d.Limits[0].Remaining, d.RetryAfter.Duration().Round(time.Second))
	}
	// Output:
	// true 2 0s
	// false 2 16m40s
}

func ExampleError() {
	server := exampleServer()
	server.Close()

	c, err := client.New(server.URL, nil)
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Take(context.Background(), client.Request{})
	var e *client.Error
	if errors.As(err, &e) && e.Kind == client.KindUnreachable {
		fmt.Println("no server, and nothing spent:", e.Spent() == mete.NotSpent)
	}
	// Output:
	// no server, and nothing spent: true
}

func exampleServer() *httptest.Server {
	m, err := policy.Load([]byte(`{"rules": [{"name": "free", "limit_keys": ["header:x-api-key"],
		"algorithm": "token_bucket", "algorithm_config": {"rps": 0.001, "burst": 5}}]}`), policy.Options{})
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
	api, err := httpapi.New(limiter, httpapi.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return httptest.NewServer(api)
}
