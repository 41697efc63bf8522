// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
)

func TestWarnings(t *testing.T) {
	config := func(s string) string { return `{"name": "r", "limit_keys": [], "algorithm_config": {` + s + `}}` }
	for _, tc := range []struct {
		rule string
		want []string // a part of each
	}{
		{config(`"rps": 10, "burst": 20`), nil},
		{config(`"rps": 0.7654321, "burst": 90000`), []string{`/rules/0: limit "r": the rate is`}},
		{config(`"rps": 1, "burst": 20, "cost_source": "header:x"`), []string{"header:x can empty a bucket", "header:x can pay as little"}},
		{config(`"rps": 1, "burst": 20, "cost_source": "query:x", "max_cost": 5`), []string{"query:x can pay as little"}},
		{config(`"rps": 1, "burst": 20, "cost_source": "query:x", "max_cost": 5, "min_cost": 1`), nil},
		{config(`"rps": 1, "burst": 20, "cost_source": "query:x", "max_cost": 5, "min_cost": 1, "fixed_cost": 1`), []string{"fixed_cost does nothing"}},
		{config(`"rps": 1, "burst": 20, "cost_source": "attribute:jwt:x"`), nil},
		{config(`"rps": 1, "burst": 20, "max_cost": 2`), []string{"do nothing"}},
		{`{"name": "r", "limit_keys": ["tenant"], @}`, []string{"only a program that embeds mete can supply the attribute tenant"}},
	} {
		m := load(t, tc.rule)
		got := m.Warnings()
		ok := len(got) == len(tc.want)
		for i := range got {
			ok = ok && strings.Contains(got[i], tc.want[i])
		}
		if !ok {
			t.Errorf("%s: warnings %q, want %q", tc.rule, got, tc.want)
		}
		exact := m.Rules()[0].Limits[0].Approximation == nil
		if exact == strings.Contains(strings.Join(got, ""), "the rate is") {
			t.Errorf("%s: exact = %t, warnings %q", tc.rule, exact, got)
		}
	}
}
