// SPDX-License-Identifier: Apache-2.0

// This program shares a limiter's buckets with all programs on one Redis. Each API key gets 3 requests at once,
// then one per minute. If Redis does not answer within 50 ms, the program decides by buckets in its own memory,
// and charges Redis later. Run it twice:
//
//	redis-server --port 6379 --save "" &
//	go run ./examples/redis 'redis://127.0.0.1:6379?prefix=shop:'
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/redisstore"
)

const rules = `{"rules": [{"name": "per-key", "limit_keys": ["header:x-api-key"],
	"rate": "1/1m", "burst": 3, "on_store_error": "local"}]}`

func newLimiter(ctx context.Context, url string) (*mete.Limiter, error) {
	matcher, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		return nil, err
	}
	return redisstore.NewLimiter(ctx, url, matcher)
}

func takeFour(ctx context.Context, limiter *mete.Limiter) error {
	for range 4 {
		d, err := limiter.Take(ctx, mete.Request{Attributes: mete.Attrs{"header:x-api-key": "k1"}})
		if err != nil {
			return err
		}
		fmt.Printf("allowed %t, degraded %t\n", d.Allowed, d.Degraded)
	}
	return nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: redis URL, such as redis://127.0.0.1:6379")
	}
	ctx := context.Background()
	limiter, err := newLimiter(ctx, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer limiter.Close()
	if err := takeFour(ctx, limiter); err != nil {
		log.Print(err)
	}
}
