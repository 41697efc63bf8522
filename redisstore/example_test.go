// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/metehq/mete"
	"github.com/metehq/mete/keyed"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/redisstore"
)

// Each API key may make 100 requests per minute over all processes.
func ExampleNewLimiter() {
	ctx := context.Background()
	matcher, err := policy.Load([]byte(`{"rules": [{"name": "search", "limit_keys": ["header:x-api-key"],
		"algorithm_config": {"rate": "100/1m", "burst": 20}, "on_store_error": "local"}]}`), policy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := redisstore.NewLimiter(ctx, "redis://127.0.0.1:6379?prefix=shop:", matcher)
	if err != nil {
		log.Fatal(err)
	}
	defer limiter.Close()
	decision, err := limiter.Take(ctx, mete.Request{Attributes: mete.Attrs{"header:x-api-key": "k1"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(decision.Allowed, decision.RetryAfter)

	// A limit by key needs no policy.
	logins, err := keyed.Over(limiter.Store(), "10/1m", 20)
	if err != nil {
		log.Fatal(err)
	}
	allowed, err := logins.Allow(ctx, "192.0.2.1")
	fmt.Println(allowed, err)
}
