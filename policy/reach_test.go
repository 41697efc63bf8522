// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policy"
)

// Pairs of rules in one group: does the first take all that the second would?
func TestUnreachable(t *testing.T) {
	for _, tc := range []struct {
		first, second string // what follows the name
		witness       string // "" where the second can match
	}{
		{`"limit_keys": []`, `"limit_keys": []`, "for example any"},
		{`"limit_keys": [], "match": {"path": "/v1/*"}`, `"limit_keys": [], "match": {"path": "/v1/*"}`, "path=/v1/"},
		{`"limit_keys": [], "match": {"path": "/v1/*"}`, `"limit_keys": [], "match": {"path": ["/v1/a", "/v1/b*"]}`, "path=/v1/a"},
		{`"limit_keys": [], "match": {"path": "/v1/*"}`, `"limit_keys": [], "match": {"path": ["/v1/a", "/v2"]}`, ""},
		{`"limit_keys": [], "match": {"path": "/v1/a"}`, `"limit_keys": [], "match": {"path": "/v1/*"}`, ""},
		{`"limit_keys": [], "match": {"path": "/v1/*"}`, `"limit_keys": []`, ""},
		{`"limit_keys": [], "match": {"method": "GET"}`, `"limit_keys": [], "match": {"method": "GET", "path": "/"}`, "method=GET path=/"},
		{`"limit_keys": [], "match": {"method": "GET", "path": "/"}`, `"limit_keys": [], "match": {"method": "GET"}`, ""},
		{`"limit_keys": [], "match": {"jwt:p": {"not": "a"}}`, `"limit_keys": [], "match": {"jwt:p": {"not": ["a", "b"]}}`, "jwt:p="},
		{`"limit_keys": [], "match": {"jwt:p": {"not": ["a", "b"]}}`, `"limit_keys": [], "match": {"jwt:p": {"not": "a"}}`, ""},
		{`"limit_keys": [], "match": {"jwt:p": {"not": "a"}}`, `"limit_keys": [], "match": {"jwt:p": {"not": "*"}}`, "no jwt:p"},
		{`"limit_keys": [], "match": {"jwt:p": "*"}`, `"limit_keys": [], "match": {"jwt:p": {"not": "*"}}`, ""},
		{`"limit_keys": [], "match": {"jwt:p": "*"}`, `"limit_keys": []`, ""},
		{`"limit_keys": ["jwt:p"]`, `"limit_keys": ["jwt:p"], "match": {"jwt:p": "x"}`, "jwt:p=x"},
		{`"limit_keys": ["jwt:p"]`, `"limit_keys": ["jwt:p"], "on_missing": "empty"`, ""},
		{`"limit_keys": ["jwt:p"], "on_missing": "deny"`, `"limit_keys": ["jwt:p"], "on_missing": "empty"`, "for example any"},
		{`"group": "g", "limit_keys": ["jwt:p"]`, `"group": "g", "limit_keys": []`, ""},
		{`"group": "g", "limit_keys": []`, `"group": "g", "limit_keys": ["jwt:p"]`, "jwt:p="},
		{`"group": "g", "limit_keys": []`, `"group": "h", "limit_keys": []`, ""},
		{`"group": "g", "limit_keys": []`, `"limit_keys": []`, ""},
		{`"limit_keys": ["jwt:p", "jwt:q"]`, `"limit_keys": ["jwt:q", "jwt:p"]`, "jwt:p="},
		{`"limit_keys": ["ip:address"]`, `"limit_keys": ["ip:address/56"]`, ""},
		{`"limit_keys": [], "match": {"ip:address": "10.0.0.0/8"}`, `"limit_keys": [], "match": {"ip:address": ["10.1.0.0/16", "10.2.3.4"]}`, "ip:address=10.1.0.0"},
		{`"limit_keys": [], "match": {"ip:address": "10.0.0.0/8"}`, `"limit_keys": [], "match": {"ip:address": ["10.1.0.0/16", "11.2.3.4"]}`, ""},
		{`"limit_keys": [], "match": {"ip:address": ["0.0.0.0/1", "128.0.0.0/1", "::/0"]}`, `"limit_keys": ["ip:address"], "match": {"ip:address": "*"}, "group": "g"`, ""},
		{`"group": "g", "limit_keys": [], "match": {"ip:address": ["0.0.0.0/1", "128.0.0.0/1", "::/0"]}`, `"group": "g", "limit_keys": ["ip:address"]`, "ip:address=192.0.2.1"},
		{`"limit_keys": [], "match": {"ip:address": {"not": "10.0.0.0/8"}}`, `"limit_keys": [], "match": {"ip:address": "2001:db8::/32"}`, "ip:address=2001:db8::1"},
		{`"limit_keys": [], "match": {"ip:address": {"not": "10.0.0.0/8"}}`, `"limit_keys": [], "match": {"ip:address": {"not": "*"}}`, "no ip:address"},
		{`"limit_keys": [], "match": {"host": "A.example"}`, `"limit_keys": [], "match": {"host": "a.EXAMPLE"}`, "host=a.example"},
		{`"limit_keys": [], "match": {"host": "*.example.com"}`, `"limit_keys": [], "match": {"host": "a.example.com"}`, "host=a.example.com"},
		{`"limit_keys": [], "match": {"host": "*.example.com"}`, `"limit_keys": [], "match": {"host": "*.a.example.com"}`, "host=x.a.example.com"},
		{`"limit_keys": [], "match": {"host": "*.example.com"}`, `"limit_keys": [], "match": {"host": ["*.example.com", "example.com"]}`, ""},
		{`"limit_keys": [], "match": {"host": "*.a.example.com"}`, `"limit_keys": [], "match": {"host": "*.example.com"}`, ""},
		{`"limit_keys": [], "match": {"host": "a*"}`, `"limit_keys": [], "match": {"host": "*.example.com"}`, ""},
		{`"limit_keys": [], "match": {"host": {"not": "*.example.com"}}`, `"limit_keys": [], "match": {"host": {"not": "*.com"}}`, "host="},
		{`"limit_keys": [], "match": {"host": {"not": "*.com"}}`, `"limit_keys": [], "match": {"host": "*.example.com"}`, ""},
		{`"limit_keys": [], "match": {"path": "/users/{id}"}`, `"limit_keys": [], "match": {"path": "/users/7"}`, "path=/users/7"},
		{`"limit_keys": [], "match": {"path": "/users/{id}"}`, `"limit_keys": [], "match": {"path": "/users/{x}"}`, "path=/users/x"},
		{`"limit_keys": [], "match": {"path": "/users/*"}`, `"limit_keys": [], "match": {"path": "/users/{id}/orders"}`, "path=/users/x/orders"},
		{`"limit_keys": [], "match": {"path": "/users/{id}"}`, `"limit_keys": [], "match": {"path": "/users/*"}`, ""},
		{`"limit_keys": [], "match": {"path": "/users/{id}"}`, `"limit_keys": [], "match": {"path": "/{kind}/{id}"}`, ""},
		{`"limit_keys": [], "match": {"path": "/{kind}/{id}"}`, `"limit_keys": [], "match": {"path": ["/users/{id}", "/orgs/{id}"]}`, "path=/"},
		{`"limit_keys": [], "match": {"path": "/{rest...}"}`, `"limit_keys": [], "match": {"path": "/users/{id}"}`, "path=/users/x"},
		{`"limit_keys": [], "match": {"path": "/files/{rest...}"}`, `"limit_keys": [], "match": {"path": "/files/*"}`, "path=/files/"},
		{`"limit_keys": [], "match": {"path": "/files/*"}`, `"limit_keys": [], "match": {"path": "/files/{rest...}"}`, "path=/files/"},
		{`"limit_keys": [], "match": {"path": "/{a}/{$}"}`, `"limit_keys": [], "match": {"path": "/b/"}`, "path=/b/"},
		{`"limit_keys": [], "match": {"path": "/users/{id}", "path:id": "a*"}`, `"limit_keys": [], "match": {"path": "/users/abc"}`, "path=/users/abc"},
		{`"limit_keys": [], "match": {"path": "/users/{id}", "path:id": {"not": "me"}}`, `"limit_keys": [], "match": {"path": "/users/{id}"}`, ""},
		{`"limit_keys": [], "match": {"path": "/users/{id}", "path:id": {"not": "me"}}`, `"limit_keys": [], "match": {"path": "/users/{x}", "path:x": {"not": ["me", "you"]}}`, "path=/users/x"},
		{`"limit_keys": ["path:id"], "match": {"path": "/a/{id}/{x}"}`, `"limit_keys": ["path:id"], "match": {"path": "/a/{x}/{id}"}`, "path=/a/x/x"},
		{`"limit_keys": [], "match": {"path": "/a/{id}/{x}", "path:id": "1"}`, `"limit_keys": [], "match": {"path": "/a/{x}/{id}", "path:id": "1"}`, ""},
		{`"limit_keys": [], "match": [{"path": "/a"}, {"method": "GET"}]`, `"limit_keys": [], "match": {"method": "GET", "path": "/b"}`, "path=/b method=GET"},
		{`"limit_keys": [], "match": [{"path": "/a"}, {"method": "GET"}]`, `"limit_keys": [], "match": [{"path": "/a", "method": "PUT"}, {"path": "/b", "method": "GET"}]`, "method=PUT"},
		{`"limit_keys": [], "match": [{"path": "/a"}, {"method": "GET"}]`, `"limit_keys": [], "match": [{"path": "/a"}, {"method": "PUT"}]`, ""},
		{`"limit_keys": [], "match": [{"path": "/a"}, {"path": {"not": "/a"}}]`, `"limit_keys": []`, "path="},
		{`"limit_keys": [], "match": {"header:x": "\u0001\n"}`, `"limit_keys": [], "match": {"header:x": "\u0001\n"}`, `header:x="\x01\n"`},
		{`"limit_keys": [], "match": {"path": "/\ufffd*"}`, `"limit_keys": [], "match": {"path": "/\ufffe"}`, ""},
		{`"limit_keys": [], "match": {"path": "/\uffff*"}`, `"limit_keys": [], "match": {"path": "/\uffffx"}`, "path="},
		{`"limit_keys": [], "mode": "shadow"`, `"limit_keys": []`, ""},
		{`"limit_keys": []`, `"limit_keys": [], "mode": "shadow"`, "for example any"},
	} {
		_, err := tryLoad(`{"name": "first", `+tc.first+`, @}`, `{"name": "second", `+tc.second+`, @}`)
		if tc.witness == "" {
			if err != nil {
				t.Errorf("%s, then %s: %v; want none", tc.first, tc.second, err)
			}
			continue
		}
		want := `rule "second" can never match: rule "first" matches all its requests first, for example`
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), tc.witness) {
			t.Errorf("%s, then %s: error %v; want a witness with %s", tc.first, tc.second, err, tc.witness)
		}
	}
}

// A random policy is refused exactly if one of its rules is chosen for none of
// all the requests there are, tried one by one.
func TestUnreachableOracle(t *testing.T) {
	const seed = 1
	rnd := rand.New(testseed.PCG(seed, 0))
	values := []string{"", "a", "aa", "aaz", "ab", "az", "b", "z"} // those with a z stand for all that no pattern names
	patterns := []string{`""`, `"a"`, `"aa"`, `"ab"`, `"b"`, `"a*"`, `"aa*"`, `"*"`, `["a", "b"]`, `["aa*", ""]`}
	refused := 0
	for round := range 1000 {
		var rules []string
		for i := range 2 + rnd.IntN(3) {
			alternative := func() string {
				var clauses []string
				for _, name := range []string{"query:p", "query:q"} {
					p := patterns[rnd.IntN(len(patterns))]
					if rnd.IntN(2) == 0 {
						p = `{"not": ` + p + `}`
					}
					if rnd.IntN(3) > 0 {
						clauses = append(clauses, fmt.Sprintf("%q: %s", name, p))
					}
				}
				return "{" + strings.Join(clauses, ", ") + "}"
			}
			match := alternative()
			if rnd.IntN(4) == 0 {
				match = "[" + match + ", " + alternative() + "]"
			}
			keys := []string{`[]`, `["query:p"]`, `["query:p", "query:q"]`}[rnd.IntN(3)]
			missing := []string{"skip", "empty"}[rnd.IntN(2)]
			mode := []string{"enforce", "enforce", "shadow"}[rnd.IntN(3)]
			rules = append(rules, fmt.Sprintf(`{"name": "r%d", "group": "g", "limit_keys": %s, "on_missing": %q, "mode": %q, "match": %s, @}`,
				i, keys, missing, mode, match))
		}
		chosen := make([]bool, len(rules))
		for i := range rules {
			chosen[i] = reachable(t, rules[:i+1], values)
		}
		_, err := tryLoad(rules...)
		var es policy.Errors
		errors.As(err, &es)
		if len(es) > 0 {
			refused++
		}
		for i, ok := range chosen {
			reported := false
			for _, e := range es {
				reported = reported || e.Path == fmt.Sprintf("/rules/%d", i) || strings.HasPrefix(e.Path, fmt.Sprintf("/rules/%d/", i))
			}
			if reported == ok {
				t.Fatalf("seed %d, round %d: %s\nrule %d can match = %t, but Load says\n%v", seed, round, strings.Join(rules, "\n"), i, ok, err)
			}
		}
	}
	if refused < 100 || refused > 900 {
		t.Errorf("%d of 1000 policies refused: the test says little", refused)
	}
}

// reachable reports whether any request is decided by the last of rules. It tries each rule in a policy of its
// own, so that nothing is rejected.
func reachable(t *testing.T, rules []string, values []string) bool {
	t.Helper()
	var alone []*policy.Matcher
	for _, r := range rules {
		m, err := tryLoad(r)
		if err != nil { // it contradicts itself
			m = nil
		}
		alone = append(alone, m)
	}
	last := alone[len(alone)-1]
	if last == nil {
		return false
	}
	shadow := last.Rules()[0].Mode == policy.ModeShadow
	for i := -1; i < len(values); i++ {
		for j := -1; j < len(values); j++ {
			attrs := policy.Map{}
			if i >= 0 {
				attrs["query:p"] = values[i]
			}
			if j >= 0 {
				attrs["query:q"] = values[j]
			}
			taken := false
			for _, m := range alone[:len(alone)-1] {
				if m == nil || m.Rules()[0].Mode == policy.ModeShadow && !shadow {
					continue
				}
				matches, _ := m.Match(nil, attrs, 0, 0)
				taken = taken || len(matches) > 0
			}
			if matches, _ := last.Match(nil, attrs, 0, 0); !taken && len(matches) > 0 {
				return true
			}
		}
	}
	return false
}

// The check gives up on policies that would cost too much, rather than refuse
// what it does not understand.
func TestUnreachableBounded(t *testing.T) {
	var rules []string
	for i := range policy.MaxRules - 1 {
		rules = append(rules, fmt.Sprintf(`{"name": "r%d", "limit_keys": [], "match": {"jwt:a": ["%d", "x*"], "jwt:b%d": {"not": "%d"}}, @}`, i, i, i%50, i))
	}
	rules = append(rules, `{"name": "last", "limit_keys": [], @}`)
	if _, err := tryLoad(rules...); err != nil && strings.Contains(err.Error(), `"last"`) {
		t.Errorf("the last rule takes what is left, and is refused: %v", err)
	}
}
