// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/policy"
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
		{"methods", append(specs(33, `"selector": {"methods": ["GET"]}, "description": "%d", `+limited), specs(33, `"selector": {"methods": ["PUT"]}, "description": "%d", `+strings.Replace(limited, "r%d", "s%d", 1))...), true},
	} {
		if _, err := bundle(t, tc.specs...); (err == nil) != tc.ok {
			t.Errorf("%s: error %v, want none: %t", tc.what, err, tc.ok)
		}
	}
}

// For some keys a rule that is in force in part applies in shadow, beside the tier
// behind it.
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

// Other limits in the place of a rule's may be more, but not too many together.
func TestMaxMatches_OfOverrides(t *testing.T) {
	var rules []string
	for i := range 60 {
		rules = append(rules, fmt.Sprintf(`{"name": "r%d", "group": "g%d", "limit_keys": ["path"], @}`, i, i))
	}
	m := load(t, rules...)
	other := func(rule, limits int) policy.Override {
		list := strings.TrimSuffix(strings.Repeat(`{"rps": 1, "burst": 1},`, limits), ",")
		return policy.Override{ID: fmt.Sprint(rule), Action: policy.Another, Rules: []string{fmt.Sprintf("r%d", rule)}, Match: json.RawMessage(`{}`),
			Limits: json.RawMessage("[" + list + "]"), Reason: "why", Author: "who", ExpiresAt: time.Now().Add(time.Hour)}
	}
	if _, err := m.WithOverrides([]policy.Override{other(1, 3), other(2, 3)}, time.Now()); err != nil {
		t.Errorf("four more: %v", err)
	}
	if _, err := m.WithOverrides([]policy.Override{other(1, 3), other(2, 4)}, time.Now()); err == nil {
		t.Error("five more are accepted, which makes 65")
	}
}
