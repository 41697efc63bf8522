// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"fmt"
	"log"
	"time"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/diff"
)

func ExampleCompare() {
	opts := policy.Options{HashKey: []byte("a review")}
	old, err := policy.Load([]byte(`{"rules": [
		{"name": "search", "match": {"path": "/search"}, "limit_keys": ["ip:address"], "algorithm_config": {"rate": "10/1s", "burst": 20}}]}`), opts)
	if err != nil {
		log.Fatal(err)
	}
	new, err := policy.Load([]byte(`{"rules": [
		{"name": "login", "match": {"path": "/login"}, "limit_keys": ["ip:address"], "algorithm_config": {"rate": "5/1m", "burst": 5}},
		{"name": "search", "match": {"path": "/search"}, "limit_keys": ["ip:address"], "algorithm_config": {"rate": "10/1s", "burst": 50}}]}`), opts)
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range diff.Compare(old, new, time.Now()) {
		fmt.Println(d.Kind, d.Rule, d.Example.Request["path"])
		for _, c := range d.Changes {
			fmt.Println(" ", c.Field, c.Old, "→", c.New)
		}
	}
	// Output:
	// rule_added login /login
	// rule_changed search /search
	//   burst 20 → 50
}
