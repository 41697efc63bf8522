// SPDX-License-Identifier: Apache-2.0

package policyyaml_test

import (
	"fmt"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

// A program embeds its policy. LoadFile reads a file.
func ExampleLoad() {
	matcher, err := policyyaml.Load([]byte(`
rules:
  - name: search
    limit_keys: ["header:x-api-key"]
    algorithm_config: { rate: 100/1m, burst: 20 }
`), policy.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(matcher.Rules()[0].Name)
	// Output:
	// search
}

// All errors come at once, each with its place.
func ExampleErrors() {
	_, err := policyyaml.Load([]byte(`
rules:
  - name: search
    limit_keys: ["header:x-api-key"]
    mode: shado
    algorithm_config: { rate: 100/1m, burst: -5 }
`), policy.Options{})
	fmt.Println(err)
	// Output:
	// policy:5:11: /rules/0/mode: mode must be enforce, shadow, off, or a share of the keys such as 25% (got "shado"); did you mean "shadow"?
	// policy:6:46: /rules/0/algorithm_config/burst: burst must be above 0 (got -5)
}
