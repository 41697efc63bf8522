// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"testing"
)

// One value can begin with several prefixes, be in several networks, and fall under
// rules that do not ask for it besides.
func TestMaxMatches_OfWhatHoldsTogether(t *testing.T) {
	for _, tc := range []struct {
		what  string
		parts map[string]int // rules of a match
		ok    bool
	}{
		{"a prefix of a prefix", map[string]int{`"a": "x*"`: 33, `"a": "xy*"`: 32}, false},
		{"a prefix of a prefix, as many as may be", map[string]int{`"a": "x*"`: 32, `"a": "xy*"`: 32}, true},
		{"a prefix of a prefix of a prefix", map[string]int{`"a": "x*"`: 22, `"a": "xy*"`: 22, `"a": "xyz*"`: 22}, false},
		{"prefixes beside each other", map[string]int{`"a": "x*"`: 40, `"a": "y*"`: 40, `"a": "z*"`: 40}, true},
		{"a value of a prefix", map[string]int{`"a": "x*"`: 33, `"a": "xy"`: 32}, false},
		{"a value of a longer prefix's prefix", map[string]int{`"a": "x*"`: 33, `"a": "xyz*"`: 10, `"a": "xy"`: 32}, false},
		{"a network in a network", map[string]int{`"ip:address": "10.0.0.0/8"`: 33, `"ip:address": "10.1.0.0/16"`: 32}, false},
		{"an address in a network in a network", map[string]int{`"ip:address": "10.0.0.0/8"`: 22, `"ip:address": "10.1.0.0/16"`: 22, `"ip:address": "10.1.1.1"`: 22}, false},
		{"networks beside each other", map[string]int{`"ip:address": "10.0.0.0/8"`: 40, `"ip:address": "11.0.0.0/8"`: 40, `"ip:address": "::/0"`: 40}, true},
		{"all and values", map[string]int{``: 33, `"a": "x"`: 32, `"a": "y"`: 32, `"a": "z"`: 32}, false},
		{"all and values, as many as may be", map[string]int{``: 32, `"a": "x"`: 32, `"a": "y"`: 32, `"a": "z"`: 32}, true},
		{"values of two attributes", map[string]int{`"a": "x"`: 33, `"a": "y"`: 33, `"b": "x"`: 32, `"b": "y"`: 32}, false},
		{"not a value", map[string]int{`"a": {"not": "x"}`: 33, `"a": "y"`: 32, `"a": "z"`: 32}, false},
	} {
		var rules []string
		for match, n := range tc.parts {
			for range n {
				i := len(rules)
				rules = append(rules, fmt.Sprintf(`{"name": "r%d", "group": "g%d", "limit_keys": [], "match": {%s}, @}`, i, i, match))
			}
		}
		if _, err := tryLoad(rules...); (err == nil) != tc.ok {
			t.Errorf("%s: error %v, want none: %t", tc.what, err, tc.ok)
		}
	}
}
