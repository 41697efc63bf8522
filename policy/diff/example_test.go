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
		fmt.Println(d.Kind, d.Rule)
		for _, c := range d.Changes {
			fmt.Println(" ", c.Field, "was", c.Old, "and is", c.New)
		}
		fmt.Println("  limits of", d.Example.Request["path"], "were", len(d.Example.Old.Matches), "and are", len(d.Example.New.Matches))
	}
	// Output:
	// rule_added login
	//   limits of /login were 0 and are 1
	// rule_changed search
	//   burst was 20 and is 50
	//   limits of /search were 1 and are 1
}
