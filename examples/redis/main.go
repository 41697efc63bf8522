// SPDX-License-Identifier: Apache-2.0

// This program is a limiter that shares its buckets with all others on one Redis:
// each key has 3 requests at once, and one a minute from then on. Where Redis does
// not answer within 50 ms it decides by buckets of its own. Run it twice:
//
//	redis-server --port 6379 --save "" &
//	go run ./examples/redis 'redis://127.0.0.1:6379?prefix=shop:'
//
// With HASH_KEY in the environment, the secret that API keys are hashed under is not
// in Redis.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/redisstore"
)

const rules = `{"rules": [{"name": "per-key", "limit_keys": ["header:x-api-key"],
	"algorithm_config": {"rate": "1/1m", "burst": 3}, "on_store_error": "local"}]}`

// newLimiter returns a limiter, and what to close when it is needed no more.
func newLimiter(ctx context.Context, url string) (*mete.Limiter, io.Closer, error) {
	node, err := redisstore.Open(ctx, url)
	if err != nil {
		return nil, nil, err // Redis is down, or refuses: nothing is limited yet
	}
	limiter, err := limit(node)
	if err != nil {
		node.Close()
		return nil, nil, err
	}
	return limiter, node, nil
}

// limit puts a guard before the store, and memory behind it.
func limit(node *redisstore.Node) (*mete.Limiter, error) {
	// Without a key, all nodes use the one that the store keeps for them.
	matcher, err := policy.Load([]byte(rules), policy.Options{HashKey: []byte(os.Getenv("HASH_KEY"))})
	if err != nil {
		return nil, err
	}
	guarded, err := guard.New(node, guard.Config{})
	if err != nil {
		return nil, err
	}
	local, err := memstore.New(memstore.Config{})
	if err != nil {
		return nil, err
	}
	return mete.New(guarded, matcher, mete.Config{Local: local, Nodes: node.Nodes})
}

// recoverSoon charges to Redis what was spent while it did not answer, although nobody
// asks for the same keys again: others could have them meanwhile.
func recoverSoon(ctx context.Context, limiter *mete.Limiter) {
	for ticker := time.NewTicker(time.Second); ; {
		select {
		case <-ctx.Done():
			ticker.Stop()
			return
		case <-ticker.C:
			_ = limiter.Recover(ctx) // there is a next time
		}
	}
}

// ask asks four times.
func ask(ctx context.Context, limiter *mete.Limiter) error {
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
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	limiter, store, err := newLimiter(ctx, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	go recoverSoon(ctx, limiter)
	if err := ask(ctx, limiter); err != nil {
		log.Print(err)
	}
}
