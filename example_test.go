// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// Each API key has 3 tokens, and one more every minute. All of them together
// have 100 a second.
func Example() {
	matcher, err := policy.Load([]byte(`{
		"rules": [
			{"name": "per key", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rate": "1/1m", "burst": 3}},
			{"name": "everyone", "limit_keys": [], "algorithm_config": {"rps": 100, "burst": 200}}
		]
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
	for range 4 {
		decision, err := limiter.Take(context.Background(), mete.Request{
			Attributes: mete.Attrs{"header:x-api-key": "k1"},
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%q: allowed %v, retry after %v\n", decision.Rule, decision.Allowed, decision.RetryAfter.Round(time.Minute))
	}
	// Output:
	// "per key": allowed true, retry after 0s
	// "per key": allowed true, retry after 0s
	// "per key": allowed true, retry after 0s
	// "per key": allowed false, retry after 1m0s
}
