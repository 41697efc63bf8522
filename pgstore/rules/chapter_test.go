// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
)

// row is a row with a limit in its columns.
func row(name, pattern, spec string) rules.Rule {
	return rules.Rule{Name: name, KeyPattern: pattern, RatePerSecond: "1", BurstCapacity: "5", Active: true, Spec: json.RawMessage(spec)}
}

// setOf is a set of rows.
func setOf(rows ...rules.Rule) *rules.Set {
	s := &rules.Set{Revision: 1, Attributes: words(), Rules: rows}
	for i := range s.Rules {
		s.Rules[i].ID = int64(i + 1)
	}
	return s
}

// A fallback is for what falls under no other row of its policy, wherever it stands.
func TestCompile_Fallback(t *testing.T) {
	m := compile(t, setOf(
		row("rest", "ip:{ip}", `{"fallback": true}`),
		row("users", "user:{user_id}", `{}`),
		row("b-rest", "global", `{"policy": "b", "fallback": true, "match": {"path": ["/b", "/b/*"], "method": "GET"}}`),
		row("b-search", "endpoint:/b/search", `{"policy": "b", "match": {"method": "GET"}}`),
		row("trial", "user:{user_id}", `{"policy": "rules", "mode": "shadow", "match": {"path": "/trial"}}`),
	))
	for _, tt := range []struct {
		request policy.Map
		want    string
	}{
		{policy.Map{"ip:address": "192.0.2.1"}, "rest:ip=192.0.2.1"},
		{policy.Map{"ip:address": "192.0.2.1", "jwt:sub": "7"}, "users:sub=7"},
		{policy.Map{"ip:address": "192.0.2.1", "jwt:sub": "7", "path": "/b/search", "method": "GET"}, "users:sub=7 b-search:"},
		{policy.Map{"ip:address": "192.0.2.1", "path": "/b", "method": "GET"}, "rest:ip=192.0.2.1 b-rest:"},
		{policy.Map{"jwt:sub": "7", "path": "/b/x", "method": "GET"}, "users:sub=7 b-rest:"},
		{policy.Map{"path": "/b/x", "method": "PUT"}, ""},
		{policy.Map{"path": "/bx", "method": "GET"}, ""},
	} {
		if got := falls(m, tt.request); got != tt.want {
			t.Errorf("%v falls under %q, want %q", tt.request, got, tt.want)
		}
	}
}

// What a fallback cannot be is told, by its row and column.
func TestCompile_BrokenFallbacks(t *testing.T) {
	for _, tt := range []struct {
		rows []rules.Rule
		want string
	}{
		{[]rules.Rule{row("a", "global", `{"fallback": true}`), row("b", "ip:{ip}", `{"fallback": true}`)},
			`rule 2 "b": spec/fallback: the fallback of the policy rules is "a" already`},
		{[]rules.Rule{row("a", "global", `{"fallback": "yes"}`)}, `rule 1 "a": spec: fallback must be true or false (got "yes")`},
		{[]rules.Rule{row("a", "global", `{"policy": 5}`)}, `rule 1 "a": spec: policy must be the name of one (got 5)`},
		{[]rules.Rule{row("a", "global", `{"policy": " x"}`)}, `rule 1 "a": spec/policy: policy id must not begin or end with a space`},
		{[]rules.Rule{row("a", "global", `{"fallback": true, "group": "g"}`)}, `rule 1 "a": spec/group: unknown field "group" in fallback_limit`},
		{[]rules.Rule{row("a", "global", `{"fallback": true, "deadline": "x"}`)}, `rule 1 "a": spec/deadline: `},
		{[]rules.Rule{row("a", "global", `{"fallback": true, "match": {"jwt:plan": "x"}}`)},
			`rule 1 "a": spec/match/jwt:plan: a fallback matches lists of path, method and host only`},
		{[]rules.Rule{row("a", "global", `{"fallback": true, "match": {"host": {"not": "x"}}}`)},
			`rule 1 "a": spec/match/host: a fallback matches lists of path, method and host only`},
		{[]rules.Rule{row("a", "user:7", `{"fallback": true}`)}, `rule 1 "a": key_pattern: a fallback matches lists of path, method and host only`},
		{[]rules.Rule{row("a", "endpoint:/a*", `{"fallback": true}`)}, `rule 1 "a": key_pattern: a fallback takes single paths, and those that begin with segments`},
		{[]rules.Rule{row("a", "endpoint:a/*", `{"fallback": true}`)}, `rule 1 "a": key_pattern: a path begins with a slash`},
		{[]rules.Rule{row("a", "endpoint:/a/*", `{"fallback": true}`), row("b", "endpoint:/b", `{}`)},
			`rule 1 "a": key_pattern: the fallback takes less than the rule "b" of its policy`},
		{[]rules.Rule{row("a", "global", `{"fallback": true, "mode": "5%"}`)}, `rule 1 "a": spec/mode: a rule without limit_keys has one key`},
	} {
		_, err := setOf(tt.rows...).Compile(options)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", rowsText(setOf(tt.rows...)), err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one mistake:\n%v", rowsText(setOf(tt.rows...)), err)
		}
	}
}

// Rows of several policies and the file that they are exported to are the same.
func TestExport_Policies(t *testing.T) {
	s := setOf(
		row("users", "user:{user_id}", `{}`),
		row("b-rest", "global", `{"policy": "b", "fallback": true, "match": {"path": ["/b/*", "/b"], "method": ["get"]}}`),
		row("rest", "ip:{ip}", `{"fallback": true, "mode": "25.0%"}`),
		row("b-1", "endpoint:/b", `{"policy": "b", "group": "g", "match": {"method": "GET"}}`),
		row("b-2", "endpoint:/b", `{"policy": "b", "group": "g", "match": {"method": "GET", "header:x": "1"}, "limit_keys": []}`),
		row("u-2", "user:{user_id}", `{"group": "g", "mode": "50.00%"}`),
		row("u-3", "user:{user_id}", `{"group": "g"}`),
	)
	s.Rules[4].KeyPattern, s.Rules[4].Spec = "global", json.RawMessage(`{"policy": "b", "group": "g", "match": {"method": "GET", "path": "/b/2"}}`)
	m, before := compile(t, s), rowsText(s)
	file := s.Export()
	sameDecisions(t, string(file), m, load(t, file), valuesOf(file))
	if err := s.Import(file, true); err != nil || rowsText(s) != before {
		t.Errorf("importing the export %s makes%s\nof%s (%v)", file, rowsText(s), before, err)
	}
}
