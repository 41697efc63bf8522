// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

const described = `{
	"bundle_version": 3, "slot_by": "header:x-tenant",
	"policies": [
		{"id": "pages", "spec": {"selector": {"hosts": "example.com", "methods": ["GET", "HEAD"]}, "rules": [
			{"name": "paid", "limit_keys": ["header:x-tenant"], "match": {"jwt:plan": ["team", "pro"]}, "algorithm_config": {"rps": 100, "burst": 200}},
			{"name": "trial", "limit_keys": ["header:x-tenant"], "mode": "25%", "algorithm_config": {"rps": 1, "burst": 2}},
			{"name": "free", "limit_keys": ["header:x-tenant"], "match": {"path": {"not": "/health"}}, "algorithm_config": {"rps": 10, "burst": 20}},
			{"name": "exports", "group": "exports", "limit_keys": ["header:x-tenant"], "on_missing": "deny", "match": {"path": "/export/*"},
				"limits": [{"name": "minute", "rps": 1, "burst": 5},
					{"name": "day", "algorithm": "fixed_window", "tokens": 100, "window": "1d", "cost_source": "header:x-cost", "default_cost": 2, "min_cost": 1, "max_cost": 10}]}
		]}},
		{"id": "api", "spec": {
			"rules": [
				{"name": "inside", "limit_keys": [], "match": {"ip:address": ["10.0.0.0/8", "fd00::/8"]}, "algorithm_config": {"rps": 10, "burst": 20, "fixed_cost": 0.5}},
				{"name": "posts", "limit_keys": [], "match": {"method": {"not": ["GET", "POST"]}}, "algorithm_config": {"rps": 10, "burst": 20}},
				{"name": "users", "limit_keys": ["jwt:sub"], "on_missing": "empty", "mode": "off", "algorithm_config": {"rps": 10, "burst": 20}}],
			"fallback_limit": {"name": "others", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 1, "burst": 2}}}}
	],
	"overrides": [
		{"id": "acme", "action": "limit", "rules": ["free"], "match": {"header:x-tenant": "acme"}, "algorithm_config": {"rps": 20, "burst": 40},
			"reason": "launch", "author": "sales", "expires_at": "2126-01-01T00:00:00Z"},
		{"id": "bad", "action": "block", "key": "free:x-tenant=bad", "reason": "loops", "author": "night", "expires_at": "2126-01-01T00:00:00Z"},
		{"id": "all", "action": "block", "match": {"path": "/x"}, "reason": "gone", "author": "night", "expires_at": "2126-01-01T00:00:00Z"}
	]
}`

// describe writes a description on one line.
func describe(r *policy.Rule, d *policy.Description) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s/%d group %d %q", r.Name, d.Policy, d.Scope, d.Group, d.GroupName)
	if d.Fallback {
		b.WriteString(" fallback")
	}
	fmt.Fprintf(&b, " %s", d.OnMissing)
	if d.SlotBy != "" {
		fmt.Fprintf(&b, " slot %s", d.SlotBy)
	}
	for _, c := range d.Match[0] {
		fmt.Fprintf(&b, "; %v %s", c.Attribute, c.Wants)
		if c.Selector {
			b.WriteString(" (selector)")
		}
	}
	for _, o := range d.Overrides {
		fmt.Fprintf(&b, "; override %s", o.ID)
	}
	return b.String()
}

func TestMatcher_Describe(t *testing.T) {
	m := mustLoad(t, described)
	const selector = `; method "GET" or "HEAD" (selector); host "example.com" (selector)`
	want := []string{
		`paid of pages/0 group 0 "" skip slot header:x-tenant` + selector + `; jwt:plan "team" or "pro"`,
		`trial of pages/0 group 0 "" skip slot header:x-tenant` + selector,
		`free of pages/0 group 0 "" skip slot header:x-tenant` + selector + `; path not "/health"; override acme; override bad`,
		`exports of pages/0 group 1 "exports" deny slot header:x-tenant` + selector + `; path "/export/*"`,
		`inside of api/1 group 2 "" skip; ip:address 10.0.0.0/8 or fd00::/8`,
		`posts of api/1 group 2 "" skip; method not "GET" or "POST"`,
		`users of api/1 group 3 "" empty`,
		`others of api/1 group 4 "" fallback skip`,
	}
	descriptions := m.Describe()
	for i, r := range m.Rules() {
		if got := describe(r, &descriptions[i]); got != want[i] {
			t.Errorf("rule %d is\n%s\nwant\n%s", i, got, want[i])
		}
	}
	if len(descriptions) != len(want) {
		t.Errorf("%d descriptions", len(descriptions))
	}
}

// Overrides that are added to an active policy belong to its rules, too.
func TestMatcher_Describe_WithOverrides(t *testing.T) {
	m := mustLoad(t, described)
	o := policy.Override{ID: "later", Action: policy.ActionAllow, Rules: []string{"paid", "free"}, Match: []byte(`{"header:x-tenant": "vip"}`),
		Reason: "r", Author: "a", ExpiresAt: time.Date(2126, 1, 1, 0, 0, 0, 0, time.UTC)}
	next, err := m.WithOverrides([]policy.Override{o}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ids := func(d policy.Description) (ids []string) {
		for _, o := range d.Overrides {
			ids = append(ids, o.ID)
		}
		return ids
	}
	if got := ids(next.Describe()[2]); !slices.Equal(got, []string{"acme", "bad", "later"}) {
		t.Errorf("overrides of free: %q", got)
	}
	if got := ids(m.Describe()[0]); got != nil {
		t.Errorf("overrides of paid before: %q", got)
	}
}

func TestLimit_Costs(t *testing.T) {
	m := mustLoad(t, described)
	limits := m.Rules()[3].Limits
	if got := limits[0].Costs(); got != (policy.Costs{Default: bucket.Token, Max: bucket.MaxTokens}) {
		t.Errorf("a limit that says nothing: %+v", got)
	}
	got := limits[1].Costs()
	if got.Source.String() != "header:x-cost" || got.Default != 2*bucket.Token || got.Min != bucket.Token || got.Max != 10*bucket.Token {
		t.Errorf("a variable cost: %+v", got)
	}
	if got := m.Rules()[4].Limits[0].Costs(); got.Default != bucket.Token/2 || got.Source != (policy.Attribute{}) {
		t.Errorf("a fixed cost: %+v", got)
	}
}

func TestMatcher_Sample(t *testing.T) {
	m := mustLoad(t, described)
	want := []string{
		`map[header:x-tenant:example host:example.com jwt:plan:pro method:GET]`,
		`map[header:x-tenant:example host:example.com method:GET]`,
		`map[header:x-tenant:example host:example.com method:GET path:/]`,
		`map[header:x-tenant:example host:example.com method:GET path:/export/]`,
		`map[ip:address:10.0.0.0]`,
		`map[ip:address:192.0.2.1 method:PUT]`,
		`map[jwt:sub:example]`,
		`map[ip:address:192.0.2.1 method:GET]`,
	}
	for i, r := range m.Rules() {
		got, ok := m.Sample(i)
		if !ok || fmt.Sprint(map[string]string(got)) != want[i] {
			t.Errorf("sample of %s: %v, %v, want %s", r.Name, map[string]string(got), ok, want[i])
		}
		if r.Mode != policy.ModeOff && !takes(m, got, r) {
			t.Errorf("the sample of %s does not fall under it: %v", r.Name, got)
		}
	}
}

func takes(m *policy.Matcher, attrs policy.Map, r *policy.Rule) bool {
	matches, v := m.Match(nil, attrs, 0, 0)
	return v.Missing == r || slices.ContainsFunc(matches, func(match policy.Match) bool { return match.Rule == r })
}

// Sample finds a request that no earlier tier takes. If there are too many tiers to compare, it finds none.
func TestMatcher_Sample_BehindTiers(t *testing.T) {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, `{"name": "r%d", "limit_keys": [], "match": {"path": "/%d"}, "algorithm_config": {"rps": 1, "burst": 1}},`, i, i)
	}
	m := mustLoad(t, `{"rules": [`+b.String()+`{"name": "rest", "limit_keys": [], "match": {"path": "/1*"}, "algorithm_config": {"rps": 1, "burst": 1}}]}`)
	for _, i := range []int{0, 999} {
		if got, ok := m.Sample(i); !ok || got["path"] != fmt.Sprintf("/%d", i) {
			t.Errorf("sample of %d: %v, %v", i, got, ok)
		}
	}
	if got, ok := m.Sample(2000); ok {
		t.Errorf("sample behind too many tiers: %v", got)
	}
	few := mustLoad(t, `{"rules": [
		{"name": "a", "limit_keys": [], "match": {"path": ["/", "/example", "/x"]}, "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "b", "limit_keys": [], "match": {"path": "/a*"}, "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "rest", "limit_keys": [], "match": {"path": ["/", "/a*", "/b"]}, "algorithm_config": {"rps": 1, "burst": 1}}]}`)
	if got, ok := few.Sample(2); !ok || got["path"] != "/b" {
		t.Errorf("sample between tiers: %v, %v, want /b", got, ok)
	}
}
