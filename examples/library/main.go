// SPDX-License-Identifier: Apache-2.0

// This program makes four requests with one API key. The README quotes it.
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
	{"name": "per-key",  "limit_keys": ["header:x-api-key"], "rate": "1/1m", "burst": 3},
	{"name": "everyone", "limit_keys": [],                   "rps": 100, "burst": 200}
]}`

func newLimiter() (*mete.Limiter, error) {
	matcher, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		return nil, err // all errors in the rules, with their places
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
	for range 4 {
		d, err := limiter.Take(context.Background(), mete.Request{
			Attributes: mete.Attrs{"header:x-api-key": "k1"},
		})
		if err != nil {
			log.Fatal(err) // there is no decision; a denial is not an error
		}
		fmt.Println(d.Allowed, d.Rule, d.RetryAfter.Round(time.Second))
	}
}
