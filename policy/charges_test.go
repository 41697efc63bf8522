// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"
)

// How many limits a request can fall under is counted by what it can match.
func TestMaxMatches_OfPoliciesThatExcludeEachOther(t *testing.T) {
	specs := func(n int, format string) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf(format, i, i))
		}
		return out
	}
	const limited = `"rules": [{"name": "r%d", "limit_keys": [], @}]`
	for _, tc := range []struct {
		what  string
		specs []string
		ok    bool
	}{
		{"paths", specs(200, `"selector": {"pathExact": "/%d"}, `+limited), true},
		{"prefixes", specs(200, `"selector": {"pathPrefix": "/%d/"}, `+limited), true},
		{"hosts and paths", specs(200, `"selector": {"hosts": ["h"], "pathPrefix": "/%d/"}, `+limited), true},
		{"all", specs(65, `"description": "%d", `+limited), false},
		{"64 of all", specs(64, `"description": "%d", `+limited), true},
		{"64 of all, and paths", append(specs(64, `"description": "%d", `+limited), specs(2, `"selector": {"pathExact": "/%d"}, `+strings.Replace(limited, "r%d", "s%d", 1))...), false},
		{"63 of all, and paths", append(specs(63, `"description": "%d", `+limited), specs(90, `"selector": {"pathExact": "/%d"}, `+strings.Replace(limited, "r%d", "s%d", 1))...), true},
		{"two for each path", append(specs(33, `"selector": {"methods": ["GET"], "pathPrefix": "/"}, "description": "%d", `+limited), specs(33, `"selector": {"pathExact": "/x"}, "description": "%d", `+strings.Replace(limited, "r%d", "s%d", 1))...), false},
		{"paths, and hosts", append(specs(90, `"selector": {"pathExact": "/%d"}, `+limited), specs(90, `"selector": {"hosts": "h%d"}, `+strings.Replace(limited, "r%d", "s%d", 1))...), true},
		{"63 of all, paths, and hosts", append(append(specs(63, `"description": "%d", `+limited), specs(9, `"selector": {"pathExact": "/%d"}, `+strings.Replace(limited, "r%d", "s%d", 1))...),
			specs(9, `"selector": {"hosts": "h%d"}, `+strings.Replace(limited, "r%d", "t%d", 1))...), false},
		{"methods", append(specs(33, `"selector": {"methods": ["GET"]}, "description": "%d", `+limited), specs(33, `"selector": {"methods": ["PUT"]}, "description": "%d", `+strings.Replace(limited, "r%d", "s%d", 1))...), true},
	} {
		if _, err := bundle(t, tc.specs...); (err == nil) != tc.ok {
			t.Errorf("%s: error %v, want none: %t", tc.what, err, tc.ok)
		}
	}
}

// For some keys, a partially enforced rule applies in shadow, beside the next tier.
func TestMaxMatches_OfRulesInPart(t *testing.T) {
	rules := func(n int, mode string) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf(`{"name": "new%d", "group": "g%d", "limit_keys": ["path"], "mode": %q, @}`, i, i, mode),
				fmt.Sprintf(`{"name": "old%d", "group": "g%d", "limit_keys": ["path"], @}`, i, i))
		}
		return out
	}
	if _, err := tryLoad(rules(32, "50%")...); err != nil {
		t.Errorf("64 limits at most: %v", err)
	}
	if _, err := tryLoad(rules(33, "50%")...); err == nil {
		t.Error("66 limits at most are accepted")
	}
}
