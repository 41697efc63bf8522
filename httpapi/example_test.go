// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

func Example() {
	m, err := policy.Load([]byte(`{"rules": [{"name": "free", "limit_keys": ["header:x-api-key"],
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
	h, err := httpapi.New(limiter, httpapi.Config{})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(h) // or http.ListenAndServe
	defer server.Close()

	for range 3 {
		resp, err := http.Post(server.URL+"/v1/take", "application/json",
			strings.NewReader(`{"attributes": {"header:x-api-key": "k1"}}`))
		if err != nil {
			log.Fatal(err)
		}
		var decision api.Decision
		if err := json.NewDecoder(resp.Body).Decode(&decision); err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Println(resp.Status, decision.Allowed)
	}
	// Output:
	// 200 OK true
	// 200 OK true
	// 200 OK false
}
