// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"

	"github.com/metehq/mete/policy"
)

func Example() {
	m, err := policy.Load([]byte(`{
		"rules": [
			{
				"name": "enterprise",
				"limit_keys": ["jwt:sub"],
				"match": {"jwt:plan": "enterprise"},
				"algorithm_config": {"rps": 1000, "burst": 2000}
			},
			{
				"name": "free",
				"limit_keys": ["jwt:sub"],
				"algorithm_config": {"rps": 10, "burst": 20}
			},
			{
				"name": "everyone",
				"limit_keys": [],
				"limits": [
					{"name": "second", "rps": 50000, "burst": 100000},
					{"name": "day", "rate": "100000000/1d", "burst": "1d"}
				]
			}
		]
	}`), policy.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, plan := range []string{"enterprise", "pro"} {
		matches, _ := m.Match(nil, policy.Map{"jwt:sub": "ada", "jwt:plan": plan}, 0, 0)
		fmt.Println(plan)
		for _, match := range matches {
			fmt.Printf("\t%v of %v\n", match.Cost, match.Key)
		}
	}
	// Output:
	// enterprise
	// 	1 of enterprise:sub=ada
	// 	1 of everyone/second:
	// 	1 of everyone/day:
	// pro
	// 	1 of free:sub=ada
	// 	1 of everyone/second:
	// 	1 of everyone/day:
}

func ExampleLoad_mistakes() {
	_, err := policy.Load([]byte(`{
		"rules": [
			{"name": "everyone", "limit_keys": [], "algorithm_config": {"rps": 10, "brust": 20}},
			{"name": "posts", "limit_keys": [], "match": {"method": "POST"}, "algorithm_config": {"rps": -1, "burst": 2}}
		]
	}`), policy.Options{})
	fmt.Println(err)
	// Output:
	// policy: /rules/0/algorithm_config/brust: unknown field "brust" in algorithm_config; did you mean "burst"?
	// policy: /rules/1: rule "posts" can never match: rule "everyone" matches all its requests first, for example method=POST; move it before the other rule, narrow the other rule's match, or give it its own group so that both apply
	// policy: /rules/1/algorithm_config/rps: rps must be above 0 (got -1)
}
