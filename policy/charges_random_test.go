// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policy"
)

// crowd returns a policy with about as many limits as one request may have, and requests that match many of its
// rules.
type crowd struct {
	*rand.Rand
	rare  int      // how rare clauses are
	modes []string // of rules
}

func (r crowd) of(list ...string) string { return list[r.IntN(len(list))] }

func (r crowd) match() string {
	var clauses []string
	for _, a := range []string{"a", "b", "ip:address"} {
		if r.IntN(r.rare) > 0 {
			continue
		}
		values := []string{`"x"`, `"xy"`, `"x*"`, `"xy*"`, `"xyz"`, `"*"`, `["x", "y"]`, `["xy*", "y*"]`, `{"not": "y"}`}
		if a == "ip:address" {
			values = []string{`"10.0.0.0/8"`, `"10.1.0.0/16"`, `"10.1.1.1"`, `"0.0.0.0/0"`, `["10.1.1.0/24", "2001:db8::/32"]`, `"*"`, `{"not": "::/0"}`}
		}
		clauses = append(clauses, strconv.Quote(a)+": "+r.of(values...))
	}
	return "{" + strings.Join(clauses, ", ") + "}"
}

// policies are the rules of some policies.
func (r crowd) policies() (policies [][]string) {
	for p := range 1 + r.IntN(4) {
		var rules []string
		for i := range 5 + r.IntN(60) {
			limits := `{"name": "a", "rps": 1, "burst": 1}`
			if r.IntN(3) == 0 {
				limits += `, {"name": "b", "rps": 1, "burst": 1}`
			}
			rules = append(rules, fmt.Sprintf(`{"name": "p%dr%d", "group": %q, "mode": %q, "limit_keys": %s, "on_missing": "empty", "match": %s, "limits": [%s]}`,
				p, i, r.of("g", "h", "g shadow", strconv.Itoa(i)), r.of(r.modes...), r.of(`["a"]`, `["b"]`), r.match(), limits))
		}
		policies = append(policies, rules)
	}
	return policies
}

var ruleOfPolicy = regexp.MustCompile(`^/policies/(\d+)/spec/rules/(\d+)`)

// matcher compiles policies without the rules that are rejected as unreachable or as too many.
func (r crowd) matcher(t *testing.T) *policy.Matcher {
	policies := r.policies()
	hosts := []string{r.of("one.example", "two.example"), r.of("one.example", "two.example"), "one.example", "two.example"}
	for {
		var specs []string
		for p, rules := range policies {
			specs = append(specs, fmt.Sprintf(`{"id": "p%d", "spec": {"selector": {"hosts": %q}, "rules": [%s], "fallback_limit": {"algorithm_config": {"rps": 1, "burst": 1}}}}`,
				p, hosts[p], strings.Join(rules, ",\n")))
		}
		m, err := policy.Load([]byte(`{"bundle_version": 1, "policies": [`+strings.Join(specs, ",\n")+"]}"), policy.Options{})
		var es policy.Errors
		if !errors.As(err, &es) {
			return m
		}
		bad := map[string]bool{}
		for _, e := range es {
			bad[ruleOfPolicy.FindString(e.Path)] = true
		}
		dropped := false
		for p, rules := range policies {
			policies[p] = nil
			for i, rule := range rules {
				if bad[fmt.Sprintf("/policies/%d/spec/rules/%d", p, i)] {
					dropped = true
				} else {
					policies[p] = append(policies[p], rule)
				}
			}
		}
		if !dropped { // there is one too many with a fallback_limit
			longest := slices.MaxFunc(policies, func(a, b []string) int { return len(a) - len(b) })
			at := slices.IndexFunc(policies, func(rules []string) bool { return len(rules) == len(longest) })
			if len(longest) == 0 {
				t.Fatal(err)
			}
			policies[at] = longest[1:]
		}
	}
}

func (r crowd) request() policy.Map {
	return policy.Map{"a": r.of("x", "xy", "xyz", "y", "z"), "b": r.of("x", "xy", "xyz", "y", "z"),
		"host": r.of("one.example", "two.example"), "ip:address": r.of("10.1.1.1", "10.1.2.3", "10.9.9.9", "2001:db8::1", "192.0.2.1")}
}

// No request falls under more limits than may be, whatever the policy that was
// accepted. Among these are some that leave little room.
func TestMatch_NeverMoreThanMaxMatches(t *testing.T) {
	most := 0
	for seed := range uint64(150) {
		r := crowd{Rand: rand.New(testseed.PCG(seed, 1))}
		r.rare = []int{2, 4, 12, 60}[seed%4]
		r.modes = [][]string{{"enforce", "shadow"}, {"enforce", "shadow", "50%", "off"}}[seed/4%2]
		m := r.matcher(t)
		for range 300 {
			attrs := r.request()
			matches, _ := m.Match(nil, attrs, 0, 0)
			if most = max(most, len(matches)); len(matches) > policy.MaxMatches {
				t.Fatalf("seed %d: %v falls under %d limits", seed, attrs, len(matches))
			}
		}
	}
	if most < policy.MaxMatches-8 {
		t.Errorf("no request falls under more than %d limits: the policies are too small to show anything", most)
	}
}

// A group may be named as another one's rules in shadow could be.
func TestMaxMatches_OfGroupsNamedShadow(t *testing.T) {
	var rules []string
	for i := range 33 {
		rules = append(rules, fmt.Sprintf(`{"name": "s%d", "group": "g%d", "mode": "shadow", "limit_keys": [], @}`, i, i),
			fmt.Sprintf(`{"name": "e%d", "group": "g%d shadow", "limit_keys": [], @}`, i, i))
	}
	if _, err := tryLoad(rules...); err == nil {
		t.Error("66 limits at once are accepted")
	}
}
