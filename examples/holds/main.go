// SPDX-License-Identifier: Apache-2.0

// Command holds limits the tokens of a language model per user. Each answer streams for a while, and its length is known
// only at the end. One process therefore holds the longest answer, and the process that ends the stream settles the count.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

const rules = `{"rules": [
	{"name": "tokens", "limit_keys": ["header:x-user"], "algorithm_config": {"rate": "10000/1h", "burst": 10000}}]}`

// longest is the most that one answer can cost.
const longest = 4000

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// With redisstore or pgstore, the two limiters can be in different processes.
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		return err
	}
	front, err := newLimiter(store)
	if err != nil {
		return err
	}
	worker, err := newLimiter(store)
	if err != nil {
		return err
	}
	for _, answer := range []mete.Tokens{812, 3500, 4000, 90} {
		h, err := front.Hold(ctx, mete.Request{Attributes: mete.Attrs{"header:x-user": "kim"}, Cost: longest}, mete.HoldOptions{TTL: 10 * time.Minute})
		if err != nil {
			return err
		}
		if !h.Allowed {
			fmt.Printf("no room for %d tokens\n", longest)
			continue
		}
		// The worker gets h.ID with the job. If it crashes, the hold keeps its charge at the expiry.
		status, err := worker.Settle(context.WithoutCancel(ctx), h.ID, answer)
		if err != nil {
			return err
		}
		fmt.Printf("held %d, settled %v: %v\n", longest, answer, status.State)
	}
	return nil
}

func newLimiter(s mete.Store) (*mete.Limiter, error) {
	m, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		return nil, err
	}
	return mete.New(s, m, mete.Config{})
}
