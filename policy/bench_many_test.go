// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/policy"
)

// manyRules returns a policy of n rules over n/10 paths and hosts, with ten rules each. It also returns a
// request that matches the rules of one place.
func manyRules(n int) map[string]func() (text string, attrs policy.Map) {
	places := max(n/10, 1)
	host := func(i int) string { return fmt.Sprintf("h%d.example.com", i%40) }
	path := func(i int) string { return fmt.Sprintf("/v1/service-%d/%d", i/40, i) }
	config := `"algorithm_config": {"rps": 100, "burst": 200}`
	attrs := policy.Map{"host": host(places / 2), "path": path(places / 2), "ip:address": "192.0.2.1", "jwt:plan": "plan-9", "method": "GET"}
	return map[string]func() (string, policy.Map){
		"match": func() (string, policy.Map) {
			var rules []string
			for i := range n {
				rules = append(rules, fmt.Sprintf(`{"name": "r%d", "limit_keys": ["ip:address"], "match": {"host": %q, "path": %q, "jwt:plan": "plan-%d"}, %s}`,
					i, host(i/10), path(i/10), i%10, config))
			}
			return `{"rules": [` + strings.Join(rules, ",") + `]}`, attrs
		},
		"templates": func() (string, policy.Map) {
			var rules []string
			for i := range n {
				rules = append(rules, fmt.Sprintf(`{"name": "r%d", "limit_keys": ["path:id"], "match": {"host": %q, "path": "/v1/service-%d/{id}/%d", "jwt:plan": "plan-%d"}, %s}`,
					i, host(i/10), i/10/40, i/10, i%10, config))
			}
			with := policy.Map{"path": fmt.Sprintf("/v1/service-%d/7/%d", places/2/40, places/2)}
			for name, value := range attrs {
				if name != "path" {
					with[name] = value
				}
			}
			return `{"rules": [` + strings.Join(rules, ",") + `]}`, with
		},
		"selectors": func() (string, policy.Map) {
			var policies []string
			for p := range places {
				var rules []string
				for i := range min(n, 10) {
					rules = append(rules, fmt.Sprintf(`{"name": "r%d", "limit_keys": ["ip:address"], "match": {"jwt:plan": "plan-%d"}, %s}`, p*10+i, i, config))
				}
				policies = append(policies, fmt.Sprintf(`{"id": "p%d", "spec": {"selector": {"hosts": [%q], "pathPrefix": %q}, "rules": [%s]}}`,
					p, host(p), path(p), strings.Join(rules, ",")))
			}
			return `{"policies": [` + strings.Join(policies, ",") + `]}`, attrs
		},
	}
}

// Ten rules, and ten thousand rules with ten that match. The ratio matters.
func BenchmarkMatchMany(b *testing.B) {
	for _, shape := range []string{"match", "templates", "selectors"} {
		for _, n := range []int{10, 100, 1000, 10_000} {
			text, attrs := manyRules(n)[shape]()
			m, err := policy.Load([]byte(text), policy.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/%d", shape, n), func(b *testing.B) {
				dst := make([]policy.Match, 0, 8)
				var given policy.Attributes = attrs
				b.ReportAllocs()
				for b.Loop() {
					if dst, _ = m.Match(dst[:0], given, 0, 0); len(dst) != 1 {
						b.Fatalf("%d matches, want 1", len(dst))
					}
				}
			})
		}
	}
}

// One of n rules matches one of the request's roles: by a list with a prefix, or by one value that is the whole attribute.
func BenchmarkMatchHas(b *testing.B) {
	for _, bc := range []struct{ name, condition, roles string }{
		{"literal", `"admin-%[1]d"`, "admin-%d"},
		{"has", `{"has": ["admin-%[1]d", "team-%[1]d:*"]}`, "staff admin-%d"},
		{"has prefix", `{"has": ["admin-%[1]d", "team-%[1]d:*"]}`, "staff team-%d:lead"},
	} {
		for _, n := range []int{10, 100, 1000} {
			var rules []string
			for i := range n {
				rules = append(rules, fmt.Sprintf(`{"name": "r%d", "limit_keys": ["ip:address"], "match": {"jwt:roles": %s}, @}`, i, fmt.Sprintf(bc.condition, i)))
			}
			m := load(b, rules...)
			b.Run(fmt.Sprintf("%s/%d", bc.name, n), func(b *testing.B) {
				dst := make([]policy.Match, 0, 8)
				var given policy.Attributes = policy.Map{"ip:address": "192.0.2.1", "jwt:roles": fmt.Sprintf(bc.roles, n/2)}
				b.ReportAllocs()
				for b.Loop() {
					if dst, _ = m.Match(dst[:0], given, 0, 0); len(dst) != 1 {
						b.Fatalf("%d matches, want 1", len(dst))
					}
				}
			})
		}
	}
}

// Nothing but the key of the rule that applies is allocated, however many rules
// there are.
func TestMatchAllocates_Many(t *testing.T) {
	for shape, make10k := range manyRules(10_000) {
		text, attrs := make10k()
		m, err := policy.Load([]byte(text), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]policy.Match, 0, 8)
		var given policy.Attributes = attrs
		got := testing.AllocsPerRun(200, func() { dst, _ = m.Match(dst[:0], given, 0, 0) })
		if len(dst) != 1 || got > 1 && !raceEnabled {
			t.Errorf("%s: %d matches, %v allocations, want 1 and that of its key", shape, len(dst), got)
		}
	}
}

// beside returns m with n overrides. Each matches another value of one header.
func beside(tb testing.TB, m *policy.Matcher, n int) *policy.Matcher {
	list := make([]policy.Override, n)
	for i := range list {
		o := policy.Override{ID: fmt.Sprint("o", i), Reason: "r", Author: "a", ExpiresAt: time.Unix(1<<32, 0)}
		switch o.Match = fmt.Appendf(nil, `{"header:x-customer": "c%d"}`, i); i % 2 {
		case 0:
			o.Action, o.Rules, o.Config = policy.ActionLimit, []string{"r"}, []byte(`{"rps": 9, "burst": 9}`)
		default:
			o.Action = policy.ActionBlock
		}
		list[i] = o
	}
	next, err := m.WithOverrides(list, time.Unix(0, 0))
	if err != nil {
		tb.Fatal(err)
	}
	return next
}

// A request pays only for the overrides that match it.
func BenchmarkMatchOverrides(b *testing.B) {
	m := load(b, `{"name": "r", "limit_keys": ["header:x-customer"], @}`)
	for _, n := range []int{0, 10, policy.MaxOverrides} {
		for what, customer := range map[string]string{"limited": "c4", "ordinary": "someone"} {
			b.Run(fmt.Sprintf("%d/%s", n, what), func(b *testing.B) {
				with, dst := beside(b, m, n), make([]policy.Match, 0, 8)
				var given policy.Attributes = policy.Map{"header:x-customer": customer}
				b.ReportAllocs()
				for b.Loop() {
					dst, _ = with.Match(dst[:0], given, 0, 1)
				}
			})
		}
	}
}

// Overrides allocate nothing, however many there are.
func TestMatchAllocates_Overrides(t *testing.T) {
	m := beside(t, load(t, `{"name": "r", "limit_keys": ["header:x-customer"], @}`), policy.MaxOverrides)
	dst := make([]policy.Match, 0, 8)
	for customer, keys := range map[string]float64{"c4": 1, "c5": 0, "someone": 1} { // c5 is blocked
		var given policy.Attributes = policy.Map{"header:x-customer": customer}
		if got := testing.AllocsPerRun(200, func() { dst, _ = m.Match(dst[:0], given, 0, 1) }); got > keys && !raceEnabled {
			t.Errorf("%s: %v allocations, want that of the %v keys only", customer, got, keys)
		}
	}
}
