// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/diff"
)

var now = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

func load(t *testing.T, text string) *policy.Matcher {
	t.Helper()
	m, err := policy.Load([]byte(text), policy.Options{HashKey: []byte("test"), Now: now})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return m
}

// rules is a policy of rules.
func rules(all ...string) string { return `{"rules": [` + strings.Join(all, ", ") + `]}` }

// words words a difference on one line.
func words(d diff.Difference) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s%s", d.Kind, d.Rule, d.Override)
	if d.OldName != "" {
		fmt.Fprintf(&b, " was %s", d.OldName)
	}
	for _, c := range d.Changes {
		fmt.Fprintf(&b, "; %s%s: %s → %s", prefixed(c.Limit), c.Field, c.Old, c.New)
	}
	if d.Before != nil {
		fmt.Fprintf(&b, "; no longer behind %s", strings.Join(d.Before, " "))
	}
	if d.After != nil {
		fmt.Fprintf(&b, "; now behind %s", strings.Join(d.After, " "))
	}
	if e := d.Example; e != nil {
		fmt.Fprintf(&b, "; e.g. %v: %s → %s", map[string]string(e.Request), decision(e.Old), decision(e.New))
	}
	return b.String()
}

func prefixed(limit string) string {
	if limit == "" {
		return ""
	}
	return limit + "."
}

func decision(d diff.Decision) string {
	switch {
	case d.Block != nil:
		return "blocked by " + d.Block.ID
	case d.Allow != nil:
		return "allowed by " + d.Allow.ID
	case d.Missing != nil:
		return "denied by " + d.Missing.Name
	}
	var names []string
	for _, m := range d.Matches {
		name := m.Limit.Name + " " + m.Limit.Bucket.Rate().String()
		if m.Shadow {
			name += " (shadow)"
		}
		names = append(names, name)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// Parts of the policies in the tests.
const (
	login   = `{"name": "login", "match": {"path": "/login"}, "limit_keys": ["ip:address"], "algorithm_config": {"rate": "5/1m", "burst": 5}}`
	search  = `{"name": "search", "match": {"path": "/search"}, "limit_keys": ["ip:address"], "algorithm_config": {"rate": "10/1s", "burst": 20}}`
	all     = `{"name": "all", "limit_keys": ["ip:address"], "algorithm_config": {"rate": "100/1m", "burst": 20}}`
	perKey  = `{"name": "key", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rate": "1/1s", "burst": 5}}`
	gets    = `{"name": "gets", "match": {"method": "GET"}, "limit_keys": ["ip:address"], "algorithm_config": {"rate": "3/1m", "burst": 3}}`
	until   = `"reason": "r", "author": "a", "expires_at": "2026-06-01T00:00:00Z"`
	blocked = `{"id": "o1", "action": "block", "match": {"ip:address": "192.0.2.7"}, ` + until + `}`
)

func TestCompare(t *testing.T) {
	with := func(rule, from, to string) string {
		if !strings.Contains(rule, from) {
			t.Fatalf("%s lacks %s", rule, from)
		}
		return strings.Replace(rule, from, to, 1)
	}
	for _, tt := range []struct {
		name, old, new string
		want           []string
	}{
		{"equal", rules(login, search), rules(login, search), nil},
		{"added", rules(search), rules(login, search), []string{
			"rule_added login; e.g. map[ip:address:192.0.2.1 path:/login]: [] → [login 5/1m0s]"}},
		{"removed", rules(login, search), rules(search), []string{
			"rule_removed login; e.g. map[ip:address:192.0.2.1 path:/login]: [login 5/1m0s] → []"}},
		{"added before another", rules(all), rules(login, all), []string{
			"rule_added login; e.g. map[ip:address:192.0.2.1 path:/login]: [all 100/1m0s] → [login 5/1m0s]"}},
		{"burst", rules(search), rules(with(search, `"burst": 20`, `"burst": 50`)), []string{
			"rule_changed search; burst: 20 → 50; e.g. map[ip:address:192.0.2.1 path:/search]: [search 10/1s] → [search 10/1s]"}},
		{"rate and mode", rules(search), rules(with(with(search, `"10/1s"`, `"7/1m"`), `"match"`, `"mode": "shadow", "match"`)), []string{
			"rule_changed search; mode: enforce → shadow; rate: 10/1s → 7/1m0s; e.g. map[ip:address:192.0.2.1 path:/search]: [search 10/1s] → [search 7/1m0s (shadow)]"}},
		{"keys", rules(search), rules(with(search, `"ip:address"`, `"header:x-tenant"`)), []string{
			"rule_changed search; limit_keys: ip:address → header:x-tenant; e.g. "}},
		{"match", rules(search), rules(with(search, `"/search"`, `["/search", "/find"]`)), []string{
			`rule_changed search; match: path is "/search" → path is "/search" or "/find"; e.g. map[ip:address:192.0.2.1 path:/find]: [] → [search 10/1s]`}},
		{"narrower match", rules(all), rules(with(all, `"limit_keys"`, `"match": {"method": {"not": "OPTIONS"}}, "limit_keys"`)), []string{
			`rule_changed all; match: all requests → method is not "OPTIONS"; e.g. map[ip:address:192.0.2.1 method:OPTIONS]: [all 100/1m0s] → []`}},
		{"moved", rules(login, gets), rules(gets, login), []string{
			"rule_moved login; now behind gets; e.g. map[ip:address:192.0.2.1 method:GET path:/login]: [login 5/1m0s] → [gets 0.05/1s]"}},
		{"moved apart", rules(login, search), rules(search, login), nil},
		{"other group", rules(login, all), rules(login, with(all, `"limit_keys"`, `"group": "own", "limit_keys"`)), []string{
			"rule_moved all; no longer behind login; e.g. map[ip:address:192.0.2.1 path:/login]: [login 5/1m0s] → [login 5/1m0s, all 100/1m0s]"}},
		{"renamed", rules(login), rules(with(login, `"login"`, `"signin"`)), []string{
			"rule_renamed signin was login; e.g. map[ip:address:192.0.2.1 path:/login]: [login 5/1m0s] → [signin 5/1m0s]"}},
		{"off", rules(login, search), rules(login, with(search, `"match"`, `"mode": "off", "match"`)), []string{
			"rule_changed search; mode: enforce → off; e.g. map[ip:address:192.0.2.1 path:/search]: [search 10/1s] → []"}},
		{"off in both", rules(login, with(search, `"match"`, `"mode": "off", "match"`)), rules(login), nil},
		{"on_missing", rules(perKey), rules(with(perKey, `"limit_keys"`, `"on_missing": "deny", "limit_keys"`)), []string{
			"rule_changed key; on_missing: the rule does not apply → the request is denied; e.g. map[]: [] → denied by key"}},
		{"on_store_error", rules(login), rules(with(login, `"match"`, `"on_store_error": "closed", "deadline": "20ms", "match"`)), []string{
			"rule_changed login; on_store_error: let through, after 50ms → denied, after 20ms; e.g. map[ip:address:192.0.2.1 path:/login]: [login 5/1m0s] → [login 5/1m0s]"}},
		{"share of the keys", rules(with(perKey, `"limit_keys"`, `"mode": "30%", "limit_keys"`)), rules(with(perKey, `"limit_keys"`, `"mode": "60%", "limit_keys"`)), []string{
			"rule_changed key; mode: 30% → 60%; e.g. map[header:x-api-key:example"}},
		{"algorithm", rules(login), rules(with(login, `"algorithm_config": {"rate": "5/1m", "burst": 5}`, `"algorithm": "sliding_window", "algorithm_config": {"tokens": 5, "window": "1m"}`)), []string{
			"rule_changed login; algorithm: "}},
		{"limits", rules(login), rules(with(login, `"algorithm_config": {"rate": "5/1m", "burst": 5}`, `"limits": [{"name": "m", "rate": "5/1m", "burst": 5}, {"name": "h", "rate": "50/1h", "burst": 50}]`)), []string{
			"rule_changed login; m.name:  → m; h.limits:  → "}},
		{"cost", rules(login), rules(with(login, `"burst": 5`, `"burst": 5, "fixed_cost": 2`)), []string{
			"rule_changed login; fixed_cost: 1 per request → 2 per request; e.g. "}},
		{"fallback", rules(login), `{"rules": [` + login + `], "fallback_limit": {"algorithm_config": {"rate": "9/1s", "burst": 9}}}`, []string{
			"rule_added fallback; e.g. "}},
		{"added before the fallback", `{"rules": [` + login + `], "fallback_limit": {"algorithm_config": {"rate": "9/1s", "burst": 9}}}`,
			`{"rules": [` + login + `,` + search + `], "fallback_limit": {"algorithm_config": {"rate": "9/1s", "burst": 9}}}`, []string{
				"rule_added search; e.g. map[ip:address:192.0.2.1 path:/search]: [fallback 9/1s] → [search 10/1s]"}},
		{"override added", rules(all), `{"rules": [` + all + `], "overrides": [` + blocked + `]}`, []string{
			"override_added o1; e.g. map[ip:address:192.0.2.7]: [all 100/1m0s] → blocked by o1"}},
		{"override removed", `{"rules": [` + all + `], "overrides": [` + blocked + `]}`, rules(all), []string{
			"override_removed o1; e.g. map[ip:address:192.0.2.7]: blocked by o1 → [all 100/1m0s]"}},
		{"override changed", `{"rules": [` + all + `], "overrides": [` + blocked + `]}`, `{"rules": [` + all + `], "overrides": [` + with(with(blocked, "block", "allow"), "192.0.2.7", "192.0.2.0/24") + `]}`, []string{
			`override_changed o1; action: block → allow; match: {"ip:address":"192.0.2.7"} → {"ip:address":"192.0.2.0/24"}; e.g. map[ip:address:192.0.2.1]: [all 100/1m0s] → allowed by o1`}},
		{"override about a secret", `{"rules": [` + all + `], "overrides": [` + with(blocked, `"ip:address": "192.0.2.7"`, `"header:x-api-key": "s1"`) + `]}`,
			`{"rules": [` + all + `], "overrides": [` + with(blocked, `"ip:address": "192.0.2.7"`, `"header:x-api-key": "s2"`) + `]}`, []string{
				`override_changed o1; match: {"header:x-api-key":"…"} → {"header:x-api-key":"…"}; e.g. map[header:x-api-key:s2 ip:address:192.0.2.1]: [all 100/1m0s] → blocked by o1`}},
		{"override for another reason", `{"rules": [` + all + `], "overrides": [` + blocked + `]}`, `{"rules": [` + all + `], "overrides": [` + with(blocked, `"r"`, `"s"`) + `]}`, nil},
		{"override limit", rules(all), `{"rules": [` + all + `], "overrides": [{"id": "l", "action": "limit", "rules": ["all"], "match": {"ip:address": "192.0.2.9"}, "algorithm_config": {"rate": "8/1s", "burst": 8}, ` + until + `}]}`, []string{
			"override_added l; e.g. map[ip:address:192.0.2.9]: [all 100/1m0s] → [all 8/1s]"}},
		{"break glass", rules(all), `{"rules": [` + all + `], "break_glass": {"enabled": true, ` + until + `}}`, []string{"override_added "}},

		// The same policy in other words.
		{"numbers", rules(login), rules(with(login, `"rate": "5/1m", "burst": 5`, `"burst": 5.0, "rate": "50/10m"`)), nil},
		{"order of values", rules(with(search, `"/search"`, `["/a", "/b"]`)), rules(with(search, `"/search"`, `["/b", "/a", "/a"]`)), nil},
		{"a value in a prefix", rules(with(search, `"/search"`, `["/a*", "/abc"]`)), rules(with(search, `"/search"`, `"/a*"`)), nil},
		{"networks", rules(with(search, `{"path": "/search"}`, `{"ip:address": ["10.0.0.0/9", "10.128.0.0/9"]}`)), rules(with(search, `{"path": "/search"}`, `{"ip:address": "10.0.0.0/8"}`)), nil},
		{"descriptions", rules(login), rules(with(login, `"match"`, `"description": "d", "match"`)), nil},
		{"name of a group", rules(login, all), rules(with(login, `"match"`, `"group": "g", "match"`), with(all, `"limit_keys"`, `"group": "g", "limit_keys"`)), nil},
		{"bundle", rules(login), `{"policies": [{"id": "p", "spec": ` + rules(login) + `}]}`, nil},
		{"selector", rules(login), `{"selector": {"pathExact": "/login"}, "rules": [` + with(login, `"match": {"path": "/login"}, `, "") + `]}`, nil},
		{"expired override", rules(all), `{"rules": [` + all + `], "overrides": [` + with(blocked, "2026-06-01", "2026-05-01") + `]}`, nil},
		{"inherited", `{"headers": ["x"], "rules": [` + login + `]}`, rules(with(login, `"match"`, `"headers": ["x"], "match"`)), nil},
	} {
		found := diff.Compare(load(t, tt.old), load(t, tt.new), now)
		var got []string
		for _, d := range found {
			got = append(got, words(d))
		}
		ok := len(got) == len(tt.want)
		for i := range min(len(got), len(tt.want)) {
			ok = ok && strings.HasPrefix(got[i], tt.want[i])
		}
		if !ok {
			t.Errorf("%s:\n got  %s\n want %s", tt.name, strings.Join(got, "\n      "), strings.Join(tt.want, "\n      "))
		}
	}
}

// Long policies are compared with bounded work: a rule before all others, and all rules in
// the opposite order.
func TestCompare_Long(t *testing.T) {
	const n = 3000
	var in, reversed []string
	for i := range n {
		rule := fmt.Sprintf(`{"name": "r%d", "match": {"path": "/%d*"}, "limit_keys": ["ip:address"], "algorithm_config": {"rate": "5/1m", "burst": 5}}`, i, 10_000+i)
		in, reversed = append(in, rule), append([]string{rule}, reversed...)
	}
	old := load(t, rules(in...))
	if found := diff.Compare(old, load(t, rules(append([]string{gets}, in...)...)), now); len(found) != 1 || found[0].Kind != diff.KindRuleAdded || found[0].Example == nil {
		t.Errorf("%d differences, %v", len(found), found[:min(len(found), 1)])
	}
	if found := diff.Compare(old, load(t, rules(reversed...)), now); len(found) > 0 {
		t.Errorf("%d differences between rules that have no request in common", len(found))
	}
}
