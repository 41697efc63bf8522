// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// load compiles a policy whose rules are written without quotes' escapes and
// without their limit, which is added to each: "@" stands for it.
func load(t testing.TB, rules ...string) *policy.Matcher {
	t.Helper()
	m, err := tryLoad(rules...)
	if err != nil {
		t.Fatalf("Load(%s): %v", rules, err)
	}
	return m
}

func tryLoad(rules ...string) (*policy.Matcher, error) {
	text := fmt.Sprintf(`{"rules": [%s]}`, strings.Join(rules, ","))
	text = strings.ReplaceAll(text, "@", `"algorithm_config": {"rps": 1, "burst": 10}`)
	return policy.Load([]byte(text), policy.Options{HashKey: []byte("test")})
}

// names are the rules that a request falls under.
func names(t testing.TB, m *policy.Matcher, attrs policy.Map) (got []string, missing string) {
	t.Helper()
	matches, verdict := m.Match(nil, attrs, 0, 0)
	for _, match := range matches {
		got = append(got, match.Rule.Name)
	}
	if verdict.Missing != nil {
		missing = verdict.Missing.Name
	}
	return got, missing
}

func TestMatchClauses(t *testing.T) {
	for _, tc := range []struct {
		match string
		attrs policy.Map
		want  bool
	}{
		{`{}`, policy.Map{}, true},
		{`{"jwt:plan": "pro"}`, policy.Map{"jwt:plan": "pro"}, true},
		{`{"jwt:plan": "pro"}`, policy.Map{"jwt:plan": "Pro"}, false},
		{`{"jwt:plan": "pro"}`, policy.Map{}, false},
		{`{"jwt:plan": ""}`, policy.Map{"jwt:plan": ""}, true},
		{`{"jwt:plan": ""}`, policy.Map{}, false},
		{`{"jwt:level": 3}`, policy.Map{"jwt:level": "3"}, true},
		{`{"jwt:admin": true}`, policy.Map{"jwt:admin": "true"}, true},
		{`{"jwt:plan": ["a", "b"]}`, policy.Map{"jwt:plan": "b"}, true},
		{`{"jwt:plan": ["a", "b"]}`, policy.Map{"jwt:plan": "c"}, false},
		{`{"jwt:n": [1,2,3,4,5,6,7,8,9,"ten*"]}`, policy.Map{"jwt:n": "9"}, true},
		{`{"jwt:n": [1,2,3,4,5,6,7,8,9,"ten*"]}`, policy.Map{"jwt:n": "tenth"}, true},
		{`{"jwt:n": [1,2,3,4,5,6,7,8,9,"ten*"]}`, policy.Map{"jwt:n": "10"}, false},
		{`{"path": "/v1/*"}`, policy.Map{"path": "/v1/"}, true},
		{`{"path": "/v1/*"}`, policy.Map{"path": "/v1"}, false},
		{`{"path": "*"}`, policy.Map{"path": "/"}, true},
		{`{"path": "*"}`, policy.Map{}, false},
		{`{"jwt:plan": {"not": "pro"}}`, policy.Map{"jwt:plan": "free"}, true},
		{`{"jwt:plan": {"not": "pro"}}`, policy.Map{"jwt:plan": "pro"}, false},
		{`{"jwt:plan": {"not": "pro"}}`, policy.Map{}, true},
		{`{"jwt:plan": {"not": ["a", "b*"]}}`, policy.Map{"jwt:plan": "beta"}, false},
		{`{"jwt:plan": {"not": "*"}}`, policy.Map{}, true},
		{`{"jwt:plan": {"not": "*"}}`, policy.Map{"jwt:plan": ""}, false},
		{`{"Header:X-Kind": "a"}`, policy.Map{"header:x-kind": "a"}, true},
		{`{"method": "get"}`, policy.Map{"method": "GET"}, true},
		{`{"host": "API.example"}`, policy.Map{"host": "api.example"}, true},
		{`{"host": "*.example.com"}`, policy.Map{"host": "a.example.com"}, true},
		{`{"host": "*.example.com"}`, policy.Map{"host": "a.b.example.com"}, true},
		{`{"host": "*.Example.COM."}`, policy.Map{"host": "a.example.com"}, true},
		{`{"host": "*.example.com"}`, policy.Map{"host": "example.com"}, false},
		{`{"host": "*.example.com"}`, policy.Map{"host": ".example.com"}, false},
		{`{"host": "*.example.com"}`, policy.Map{"host": "a.example.com.evil.example"}, false},
		{`{"host": "*.example.com"}`, policy.Map{"host": "aexample.com"}, false},
		{`{"host": "*.example.com"}`, policy.Map{}, false},
		{`{"host": {"not": "*.example.com"}}`, policy.Map{"host": "example.com"}, true},
		{`{"host": {"not": "*.example.com"}}`, policy.Map{"host": "a.example.com"}, false},
		{`{"host": ["example.com", "*.example.com"]}`, policy.Map{"host": "example.com"}, true},
		{`{"host": "*.com"}`, policy.Map{"host": "example.com"}, true},
		{`{"ip:address": "10.0.0.0/8"}`, policy.Map{"ip:address": "10.1.2.3"}, true},
		{`{"ip:address": "10.0.0.0/8"}`, policy.Map{"ip:address": "::ffff:10.1.2.3"}, true},
		{`{"ip:address": "10.0.0.0/8"}`, policy.Map{"ip:address": "11.1.2.3"}, false},
		{`{"ip:address": ["192.0.2.1", "2001:db8::/32"]}`, policy.Map{"ip:address": "2001:db8::5%eth0"}, true},
		{`{"ip:address": ["192.0.2.1", "2001:db8::/32"]}`, policy.Map{"ip:address": "192.0.2.1"}, true},
		{`{"ip:address": ["192.0.2.1", "2001:db8::/32"]}`, policy.Map{"ip:address": "192.0.2.2"}, false},
		{`{"ip:address": "*"}`, policy.Map{"ip:address": "::1"}, true},
		{`{"ip:address": "*"}`, policy.Map{"ip:address": "localhost"}, false},
		{`{"ip:address": {"not": "10.0.0.0/8"}}`, policy.Map{"ip:address": "unknown"}, true},
		{`{"ip:address": {"not": "10.0.0.0/8"}}`, policy.Map{"ip:address": "10.0.0.1"}, false},
		{`{"method": "POST", "path": "/a"}`, policy.Map{"method": "POST", "path": "/b"}, false},
		{`{"method": "POST", "path": "/a"}`, policy.Map{"method": "POST", "path": "/a"}, true},
		{`{"tenant": "t"}`, policy.Map{"tenant": "t"}, true},
		{`{"user:plan": "t"}`, policy.Map{"user:plan": "t"}, true},
	} {
		m := load(t, fmt.Sprintf(`{"name": "r", "limit_keys": [], "match": %s, @}`, tc.match))
		if got, _ := names(t, m, tc.attrs); (len(got) == 1) != tc.want {
			t.Errorf("match %s, request %v: applies = %t, want %t", tc.match, tc.attrs, !tc.want, tc.want)
		}
	}
}

func TestTiersAndStacks(t *testing.T) {
	m := load(t,
		`{"name": "pro", "limit_keys": ["jwt:sub", "jwt:org"], "match": {"jwt:plan": "pro"}, @}`,
		`{"name": "address", "limit_keys": ["ip:address"], @}`,
		`{"name": "free", "limit_keys": ["jwt:org", "jwt:sub"], @}`,
		`{"name": "all", "limit_keys": [], "limits": [{"rps": 1, "burst": 1}, {"name": "day", "rate": "5/1d", "burst": 5}]}`,
		`{"name": "post", "limit_keys": [], "group": "posts", "match": {"method": "POST"}, @}`,
		`{"name": "site", "limit_keys": ["ip:address/48"], @}`,
	)
	user := policy.Map{"jwt:sub": "u", "jwt:org": "o", "ip:address": "192.0.2.1", "method": "GET"}
	for _, tc := range []struct {
		name, value string
		want        string
	}{
		{"jwt:plan", "pro", "pro address all all site"},
		{"jwt:plan", "", "address free all all site"},
		{"method", "POST", "address free all all post site"},
		{"ip:address", "?", "free all all"},
	} {
		attrs := policy.Map{tc.name: tc.value}
		for name, value := range user {
			if name != tc.name {
				attrs[name] = value
			}
		}
		got, missing := names(t, m, attrs)
		if strings.Join(got, " ") != tc.want || missing != "" {
			t.Errorf("%v: rules %v, missing %q; want %s", attrs, got, missing, tc.want)
		}
	}
	var limits []string
	for _, r := range m.Rules() {
		for _, l := range r.Limits {
			limits = append(limits, l.Name)
		}
	}
	if want := []string{"pro", "address", "free", "all/1", "all/day", "post", "site"}; !slices.Equal(limits, want) {
		t.Errorf("limits %q, want %q", limits, want)
	}
}

// A rule whose key is missing leaves the request to the next tier.
func TestFallbackKey(t *testing.T) {
	m := load(t,
		`{"name": "key", "group": "caller", "limit_keys": ["header:x-api-key"], @}`,
		`{"name": "address", "group": "caller", "limit_keys": ["ip:address"], @}`,
	)
	for want, attrs := range map[string]policy.Map{
		"[key]":     {"header:x-api-key": "k", "ip:address": "::1"},
		"[address]": {"ip:address": "::1"},
		"[]":        {},
	} {
		if got, _ := names(t, m, attrs); fmt.Sprint(got) != want {
			t.Errorf("%v: rules %v, want %s", attrs, got, want)
		}
	}
}

func TestOnMissing(t *testing.T) {
	m := load(t,
		`{"name": "skip", "limit_keys": ["query:a"], "on_missing": "skip", @}`,
		`{"name": "empty", "limit_keys": ["query:b", "ip:address"], "on_missing": "empty", @}`,
		`{"name": "shadow", "limit_keys": ["query:c"], "on_missing": "deny", "mode": "shadow", @}`,
		`{"name": "deny", "limit_keys": ["query:d"], "on_missing": "deny", "match": {"path": "/d"}, @}`,
	)
	for _, tc := range []struct {
		attrs         policy.Map
		want, missing string
	}{
		{policy.Map{}, "[empty]", ""},
		{policy.Map{"query:a": ""}, "[skip empty]", ""},
		{policy.Map{"path": "/d"}, "[empty]", "deny"},
		{policy.Map{"path": "/d", "query:d": ""}, "[empty deny]", ""},
		{policy.Map{"query:c": "x"}, "[empty shadow]", ""},
	} {
		got, missing := names(t, m, tc.attrs)
		if fmt.Sprint(got) != tc.want || missing != tc.missing {
			t.Errorf("%v: rules %v, missing %q; want %s, %q", tc.attrs, got, missing, tc.want, tc.missing)
		}
	}
	if _, verdict := m.Match(nil, nil, 0, 0); verdict.Denies() {
		t.Errorf("nil attributes: missing %q", verdict.Missing.Name)
	}
}

// A shadow rule is chosen as if it were enforced, and takes nothing from the
// rules that are.
func TestShadow(t *testing.T) {
	m := load(t,
		`{"name": "trial", "limit_keys": [], "match": {"jwt:plan": "trial"}, "mode": "shadow", @}`,
		`{"name": "pro", "limit_keys": [], "match": {"jwt:plan": "pro"}, @}`,
		`{"name": "next", "limit_keys": [], "mode": "shadow", @}`,
		`{"name": "now", "limit_keys": [], @}`,
	)
	for plan, want := range map[string]string{"trial": "[trial now]", "pro": "[pro]", "free": "[next now]"} {
		if got, _ := names(t, m, policy.Map{"jwt:plan": plan}); fmt.Sprint(got) != want {
			t.Errorf("plan %s: rules %v, want %s", plan, got, want)
		}
	}
	for _, r := range m.Rules() {
		if want := r.Name == "trial" || r.Name == "next"; (r.Mode == policy.ModeShadow) != want {
			t.Errorf("rule %s: mode %v", r.Name, r.Mode)
		}
	}
	_, err := tryLoad(`{"name": "now", "limit_keys": [], @}`, `{"name": "next", "limit_keys": [], "mode": "shadow", @}`)
	if err == nil {
		t.Error("a shadow rule behind one that takes everything is accepted, want an error")
	}
}

// A policy in shadow puts all its rules in shadow; tiers end where a policy does.
func TestBundle(t *testing.T) {
	m, err := policy.Load([]byte(`{"bundle_version": 7, "issued_at": "2020-01-01T00:00:00Z", "policies": [
		{"id": "a", "spec": {"mode": "shadow", "rules": [{"name": "x", "limit_keys": [], "mode": "enforce",
			"on_store_error": "closed", "description": "d", "algorithm_config": {"rps": 1, "burst": 1}}]}},
		{"id": "b", "spec": {"rules": [{"name": "y", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1}}]}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := names(t, m, policy.Map{}); fmt.Sprint(got) != "[x y]" || m.Version() != 7 {
		t.Errorf("rules %v, version %d; want [x y], 7", got, m.Version())
	}
	r := m.Rules()[0]
	if r.Mode != policy.ModeShadow || r.OnStoreError != policy.OnStoreErrorClosed || r.Description != "d" || m.Rules()[1].Mode != policy.ModeEnforce {
		t.Errorf("rules %+v and %+v: want the first in shadow and closed", r, m.Rules()[1])
	}
}

func TestMaxMatches(t *testing.T) {
	rules := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf(`{"name": "r%d", "limit_keys": ["query:q%d"], @}`, i, i))
		}
		return out
	}
	if _, err := tryLoad(rules(policy.MaxMatches)...); err != nil {
		t.Errorf("%d limits: %v", policy.MaxMatches, err)
	}
	var es policy.Errors
	if _, err := tryLoad(rules(policy.MaxMatches + 1)...); !errors.As(err, &es) || len(es) != 1 {
		t.Errorf("%d limits: %v, want one error", policy.MaxMatches+1, err)
	}
}

// lookups counts how often each attribute is asked for.
type lookups struct {
	policy.Map
	asked map[string]int
}

func (l lookups) Lookup(a policy.Attribute) (string, bool) {
	l.asked[a.String()]++
	return l.Map.Lookup(a)
}

func TestLookupOnce(t *testing.T) {
	m := load(t,
		`{"name": "a", "limit_keys": ["ip:address"], "match": {"jwt:plan": "a", "method": "GET"}, @}`,
		`{"name": "b", "limit_keys": ["ip:address"], "match": {"jwt:plan": "b"}, @}`,
		`{"name": "c", "limit_keys": ["ip:address/48"], "match": {"ip:address": {"not": "10.0.0.0/8"}}, @}`,
	)
	l := lookups{policy.Map{"jwt:plan": "b", "ip:address": "::1"}, map[string]int{}}
	for round := 1; round <= 2; round++ {
		m.Match(nil, l, 0, 0)
		if want := map[string]int{"jwt:plan": round, "ip:address": round}; fmt.Sprint(l.asked) != fmt.Sprint(want) {
			t.Errorf("lookups %v, want %v", l.asked, want)
		}
	}
	var got []string
	for _, a := range m.Attributes() {
		got = append(got, a.String())
	}
	slices.Sort(got)
	if fmt.Sprint(got) != "[ip:address jwt:plan method]" {
		t.Errorf("Attributes = %v", got)
	}
	for s, want := range map[policy.Source]bool{policy.SourceIP: true, policy.SourceJWT: true, policy.SourceMethod: true, policy.SourceHeader: false, 99: false} {
		if m.Uses(s) != want {
			t.Errorf("Uses(%d) = %t, want %t", s, !want, want)
		}
	}
}

// Goroutines share a matcher without seeing each other's requests.
func TestMatchConcurrently(t *testing.T) {
	m := load(t,
		`{"name": "r", "limit_keys": ["path", "header:x-api-key"], "match": {"ip:address": {"not": "10.0.0.0/8"}}, @}`,
		`{"name": "s", "limit_keys": ["ip:address"], @}`,
	)
	var wg sync.WaitGroup
	for g := range 4 {
		attrs := policy.Map{"path": fmt.Sprintf("/%d", g), "header:x-api-key": strings.Repeat("k", g), "ip:address": fmt.Sprintf("192.0.2.%d", g)}
		want, _ := m.Match(nil, attrs, 0, 0)
		wg.Go(func() {
			for range 500 {
				if got, _ := m.Match(nil, attrs, 0, 0); !slices.Equal(got, want) {
					t.Errorf("Match(%v) = %v, want %v", attrs, got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestRateForms(t *testing.T) {
	for config, want := range map[string]bucket.Spec{
		`"rps": 0.5, "burst": 0.25, "fixed_cost": 0.125`:           {Capacity: 250, Rate: bucket.PerSecond(500)},
		`"tokens_per_second": "1.5", "burst": "20"`:                {Capacity: 20000, Rate: bucket.PerSecond(1500)},
		`"rps": 2, "tokens_per_second": 2.0, "burst": 1`:           {Capacity: 1000, Rate: bucket.PerSecond(2000)},
		`"rps": 100, "burst": 1`:                                   {Capacity: 1000, Rate: bucket.PerSecond(100000)},
		`"rate": "7/1m", "burst": "300s"`:                          {Capacity: 35000, Rate: bucket.Rate{Tokens: 7000, Per: 60e9}},
		`"rps": 10, "rate": "600/m", "burst": "1m30s"`:             {Capacity: 900000, Rate: bucket.PerSecond(10000)},
		`"rps": 0.0001, "burst": 1e1, "refill": "continuous"`:      {Capacity: 10000, Rate: bucket.Rate{Tokens: 1000, Per: 1e4 * 1e9}},
		`"rps": 16.1, "burst": 9007199.254, "cost_source":"fixed"`: {Capacity: 9007199254, Rate: bucket.PerSecond(16100)},
	} {
		m, err := policy.Load([]byte(`{"algorithm_config": {`+config+`}}`), policy.Options{})
		if err != nil {
			t.Errorf("%s: %v", config, err)
			continue
		}
		limit, _, err := want.Compile()
		if got := m.Rules()[0].Limits[0].Bucket; err != nil || got != limit {
			t.Errorf("%s: %v, want %v (%v)", config, got, limit, err)
		}
	}
}

// A rule is skipped where its key is missing and everything else of it would apply.
func TestFind_Skipped(t *testing.T) {
	m := load(t,
		`{"name": "off", "mode": "off", "limit_keys": ["header:a"], @}`,
		`{"name": "other path", "match": {"path": "/x"}, "limit_keys": ["header:a"], @}`,
		`{"name": "keyed", "group": "g", "limit_keys": ["header:a"], @}`,
		`{"name": "tier", "group": "g", "limit_keys": ["header:b"], @}`,
		`{"name": "shadow", "mode": "shadow", "limit_keys": ["header:a", "header:b"], "group": "s", @}`,
		`{"name": "empty", "limit_keys": ["header:c"], "on_missing": "empty", @}`)
	for _, tt := range []struct {
		attrs policy.Map
		want  string
	}{
		{policy.Map{}, "[keyed tier shadow]"},
		{policy.Map{"header:a": "1"}, "[shadow]"}, // its tier is taken
		{policy.Map{"header:b": "1"}, "[keyed shadow]"},
		{policy.Map{"header:a": "1", "header:b": "1"}, "[]"},
	} {
		var got []string
		var f policy.MatchResult
		m.Find(&f, tt.attrs, 0, 0)
		for _, r := range f.Skipped {
			got = append(got, r.Name)
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%v: got %v, want %s", tt.attrs, got, tt.want)
		}
		if plain, _ := m.Match(nil, tt.attrs, 0, 0); len(plain) != len(f.Matches) {
			t.Errorf("%v: got %d matches, and %d without what was skipped", tt.attrs, len(f.Matches), len(plain))
		}
	}
	var f policy.MatchResult
	if n := testing.AllocsPerRun(100, func() { m.Find(&f, nil, 0, 0) }); n > 0 && !raceEnabled {
		t.Errorf("got %v allocations, want none", n)
	}
}
