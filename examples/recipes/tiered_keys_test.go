// SPDX-License-Identifier: Apache-2.0

package recipes_test

import (
	"context"
	"fmt"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// Rules with the same limit_keys are tiers: the first match applies. The limit that all clients share is a separate rule,
// which applies as well.
const tiers = `
{"rules": [
	{"name": "enterprise", "limit_keys": ["header:x-api-key"], "match": {"plan": "enterprise"},
	 "rps": 1000, "burst": 2000},
	{"name": "free", "limit_keys": ["header:x-api-key"],
	 "rps": 10, "burst": 20},
	{"name": "everyone", "limit_keys": [],
	 "rps": 50000, "burst": 100000}
]}`

func Example_tieredKeys() {
	c := newClock()
	matcher := must(policy.Load([]byte(tiers), policy.Options{}))
	store := must(memstore.New(memstore.Config{Now: c.Now}))
	limiter := must(mete.New(store, matcher, mete.Config{}))

	for _, client := range []mete.Attrs{
		{"header:x-api-key": "k1", "plan": "enterprise"},
		{"header:x-api-key": "k2"},
	} {
		allowed := 0
		for range 3000 {
			d := must(limiter.Take(context.Background(), mete.Request{Attributes: client}))
			if d.Allowed {
				allowed++
			} else if allowed > 0 {
				fmt.Printf("%d at once, then %q denies for %v\n", allowed, d.Rule, d.RetryAfter)
				break
			}
		}
	}
	// Output:
	// 2000 at once, then "enterprise" denies for 1ms
	// 20 at once, then "free" denies for 100ms
}
