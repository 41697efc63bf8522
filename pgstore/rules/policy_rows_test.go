// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

// row returns a row of a policy with these fields in spec, a limit, and limit_keys.
func row(name, of, fields string) rules.Rule {
	spec := fmt.Sprintf(`{"name": %q, "algorithm_config": {"rps": 1, "burst": 5}, %s}`, name, fields)
	return rules.Rule{Name: name, Policy: cmp.Or(of, rules.DefaultPolicy), Active: true, Spec: json.RawMessage(spec)}
}

// fallback returns the row of a fallback_limit.
func fallback(name, of, fields string) rules.Rule {
	r := row(name, of, fields)
	r.Fallback = true
	return r
}

// setOf returns a set of rows.
func setOf(rows ...rules.Rule) *rules.Set {
	s := &rules.Set{Revision: 1, Rules: rows, Policies: map[string]json.RawMessage{}}
	for i := range s.Rules {
		s.Rules[i].ID = int64(i + 1)
	}
	return s
}

// TestCompile_Fallback applies a fallback to requests that no other row of its policy matches, in any position.
func TestCompile_Fallback(t *testing.T) {
	s := setOf(
		fallback("rest", "", `"limit_keys": ["ip:address"]`),
		row("users", "", `"limit_keys": ["jwt:sub"]`),
		fallback("b-rest", "b", `"limit_keys": []`),
		row("b-search", "b", `"limit_keys": [], "match": {"path": "/b/search"}`),
		row("trial", "rules", `"limit_keys": ["jwt:sub"], "mode": "shadow", "match": {"path": "/trial"}`),
	)
	s.Policies["b"] = json.RawMessage(`{"selector": {"pathPrefix": "/b", "methods": "GET"}}`)
	m := compile(t, s)
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

// TestCompile_NamesTheRow proves that an error names its row, or the document of its policy.
func TestCompile_NamesTheRow(t *testing.T) {
	global := `"limit_keys": []`
	for _, tt := range []struct {
		rows     []rules.Rule
		policies string // of the policy b
		want     string
	}{
		{[]rules.Rule{fallback("a", "", global), fallback("b", "", global)}, `{}`,
			`rule 2 "b": is_fallback: policy rules already has the fallback "a"`},
		{[]rules.Rule{row("a", " x", global)}, `{}`, `policy " x": policy: policy id must not begin or end with a space`},
		{[]rules.Rule{fallback("a", "", global+`, "group": "g"`)}, `{}`, `rule 1 "a": spec/group: unknown field "group" in fallback_limit`},
		{[]rules.Rule{row("x", "", global), fallback("a", "b", global+`, "deadline": "x"`)}, `{}`, `rule 2 "a": spec/deadline: `},
		{[]rules.Rule{fallback("a", "", global+`, "match": {"path": "/a"}`)}, `{}`, `rule 1 "a": spec/match: unknown field "match" in fallback_limit`},
		{[]rules.Rule{fallback("a", "", global+`, "mode": "5%"`)}, `{}`, `rule 1 "a": spec/mode: a rule without limit_keys has a single key`},
		{[]rules.Rule{row("x", "", global), row("a", "b", global+`, "match": {"path": "a/*"}`)}, `{}`, `rule 2 "a": spec/match/path: a path must start with a slash`},
		{[]rules.Rule{row("a", "b", global)}, `{"selector": {"pathPrefix": "a"}}`, `policy "b": spec/selector/pathPrefix: a path must start with a slash`},
		{[]rules.Rule{row("a", "b", global)}, `{"modus": "shadow"}`, `policy "b": spec/modus: unknown field "modus"`},
	} {
		s := setOf(tt.rows...)
		s.Policies["b"] = json.RawMessage(tt.policies)
		_, err := s.Compile(options)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", rowsText(s), err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one mistake:\n%v", rowsText(s), err)
		}
	}
	s := setOf(row("a", "", global))
	s.Policies[""] = json.RawMessage(`{"tests": [{"name": "t", "expect": "alowed"}]}`)
	if _, err := s.Compile(options); err == nil || !strings.HasPrefix(err.Error(), "spec/tests/0/expect: ") {
		t.Errorf("a mistake in the document of all policies: %v", err)
	}
}

// TestExport_Policies exports rows without a group, which still apply together, even beside a group with the name
// of one of them.
func TestExport_Policies(t *testing.T) {
	user := `"limit_keys": ["jwt:sub"]`
	s := setOf(
		row("users", "", user),
		fallback("b-rest", "b", `"limit_keys": []`),
		fallback("rest", "", `"limit_keys": ["ip:address"], "mode": "25.0%"`),
		row("b-1", "b", `"limit_keys": [], "group": "g", "match": {"path": "/b"}`),
		row("b-2", "b", `"limit_keys": [], "group": "g", "match": {"header:x": "1"}`),
		row("u-2", "", user+`, "group": "users", "match": {"path": "/b"}`),
		row("u-3", "", user+`, "group": "users"`),
		row("u-4", "", user+`, "mode": "shadow"`),
	)
	s.Policies["b"] = json.RawMessage(`{"selector":{"methods":"GET","pathPrefix":"/b"}}`)
	m, before := compile(t, s), rowsText(s)
	request := policy.Map{"jwt:sub": "7", "path": "/b", "method": "GET"}
	if got := falls(m, request); strings.Count(got, "sub=7") != 3 || !strings.HasSuffix(got, "b-1:") {
		t.Errorf("a request falls under %q, want one limit by itself, one of the group users, one in shadow, and b-1", got)
	}
	file := s.Export()
	sameDecisions(t, string(file), m, load(t, file), valuesOf(file))
	if err := s.Import(file, true); err != nil || rowsText(s) != before {
		t.Errorf("importing the export %s makes%s\nof%s (%v)", file, rowsText(s), before, err)
	}
}

// TestImport_KeepsTheRest keeps overrides, tests and descriptions of a file in the documents of policies.
func TestImport_KeepsTheRest(t *testing.T) {
	const rule = `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 5}}`
	const why = `"reason": "x", "author": "a", "expires_at": "2999-01-01T00:00:00Z"`
	file := []byte(`{"description": "d", "mode": "shadow", "rules": [` + rule + `], "tests": [{"name": "t", "request": {"header:x": 1e1}, "expect": "allowed"}],
		"overrides": [{"id": "o", "action": "block", "match": {"header:x": 1e1}, ` + why + `}],
		"kill_switches": [{"scope_key": "header:x", "scope_value": "1", ` + why + `}], "global_shadow": {` + why + `}, "break_glass": {"enabled": true, ` + why + `}}`)
	want := load(t, bytes.ReplaceAll(file, []byte("1e1"), []byte(`"1e1"`)))
	s := fromFile(t, file)
	for _, got := range []*policy.Matcher{compile(t, s), load(t, s.Export())} {
		sameDecisions(t, string(file), want, got, nil)
		if w, g := fmt.Sprintf("%+v", want.Overrides()), fmt.Sprintf("%+v", got.Overrides()); w != g {
			t.Errorf("overrides are\n%s\nwant\n%s", g, w)
		}
		w, _, _ := policytest.Read(want)
		if g, _, err := policytest.Read(got); err != nil || !reflect.DeepEqual(g, w) || len(g) != 1 {
			t.Errorf("tests are\n%+v, %v\nwant\n%+v", g, err, w)
		}
	}
	if got := string(s.Export()); !strings.Contains(got, `"description":"d"`) || strings.Contains(got, "1e1,") || strings.Contains(got, "1e1}") {
		t.Errorf("export %s: want the description, and text in the place of 1e1, which jsonb would write as 10", got)
	}
	plain := []byte(`{"rules": [` + rule + `]}`)
	if before := rowsText(s); s.Import(plain, false) != nil || rowsText(s) != before {
		t.Errorf("the import of a rule makes%s\nof%s", rowsText(s), before)
	}
	s.Policies["other"] = json.RawMessage(`{"selector":{"pathPrefix":"/"}}`)
	if err := s.Import(plain, true); err != nil || len(s.Policies) != 1 || s.Policies["other"] == nil {
		t.Errorf("with replace: %v, documents %s; want that of the other policy alone", err, s.Policies)
	}
}

// TestImport_KnowsTheFieldsOfAFile proves that Import knows each field that is valid in a file but not in a
// policy of a bundle.
func TestImport_KnowsTheFieldsOfAFile(t *testing.T) {
	var schema struct {
		Defs map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(policy.JSONSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	fields := schema.Defs["file"].Properties
	for field := range schema.Defs["policy"].Properties {
		delete(fields, field)
	}
	want, got := slices.Sorted(maps.Keys(fields)), slices.Sorted(slices.Values(rules.FileFields))
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the fields of a file are %q, want %q", got, want)
	}
}

func TestLeftOut(t *testing.T) {
	const list = `"rules": [{"name": "r", "description": "d", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 5}}]`
	for _, tt := range []struct{ data, want string }{
		{`{` + list + `}`, ""},
		{`{"description": "d", ` + list + `, "tests": []}`, ""},
		{`{"bundle_version": 5, "issued_at": "2026-01-01T00:00:00Z", "expires_at": "2999-01-01T00:00:00Z", "description": "d", "tests": [],
			"policies": [{"id": "a", "spec": {` + list + `, "description": "e"}}]}`, "/bundle_version /issued_at /expires_at"},
		{`[]`, ""},
	} {
		if got := strings.Join(rules.DroppedFields([]byte(tt.data)), " "); got != tt.want {
			t.Errorf("LeftOut(%s) = %q, want %q", tt.data, got, tt.want)
		}
	}
}
