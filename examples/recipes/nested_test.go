// SPDX-License-Identifier: Apache-2.0

package recipes_test

import (
	"context"
	"fmt"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// Rules with different limit_keys apply together. All of them charge a request or none does, so a user keeps its tokens
// when the limit of the tenant denies.
const nested = `
{"rules": [
	{"name": "user",   "limit_keys": ["tenant", "user"], "rate": "5/1m",   "burst": 5},
	{"name": "tenant", "limit_keys": ["tenant"],         "rate": "8/1m",   "burst": 8},
	{"name": "all",    "limit_keys": [],                 "rate": "100/1m", "burst": 100}
]}`

func Example_nested() {
	c := newClock()
	matcher := must(policy.Load([]byte(nested), policy.Options{}))
	store := must(memstore.New(memstore.Config{Now: c.Now}))
	limiter := must(mete.New(store, matcher, mete.Config{}))

	ask := func(user string, times int) {
		var d mete.Decision
		for range times {
			d = must(limiter.Take(context.Background(), mete.Request{
				Attributes: mete.Attrs{"tenant": "acme", "user": user},
			}))
		}
		fmt.Printf("%s: %v, decided by %s:", user, d.Allowed, d.Rule)
		for _, l := range d.Limits() {
			fmt.Printf("  %s %d", l.Rule.Name, l.Remaining().Whole())
		}
		fmt.Println()
	}
	ask("alice", 5)
	ask("alice", 1)
	ask("bob", 3)
	ask("bob", 100) // denied by the tenant: bob keeps 2, and all keep 92
	// Output:
	// alice: true, decided by user:  user 0  tenant 3  all 95
	// alice: false, decided by user:  user 0  tenant 3  all 95
	// bob: true, decided by tenant:  user 2  tenant 0  all 92
	// bob: false, decided by tenant:  user 2  tenant 0  all 92
}
