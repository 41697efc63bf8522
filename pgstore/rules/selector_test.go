// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
)

// The selector of a policy is in the match of each row.
func TestImport_Selectors(t *testing.T) {
	for _, tt := range []struct{ selector, match, want string }{
		{`{"pathExact": "/a"}`, `{}`, `endpoint:/a {}`},
		{`{"pathPrefix": "/v1"}`, `{}`, `global {"match":{"path":["/v1","/v1/*"]}}`},
		{`{"pathPrefix": "/v1/"}`, `{}`, `endpoint:/v1/* {}`},
		{`{"pathPrefix": "/"}`, `{}`, `endpoint:/* {}`},
		{`{"pathExact": ["/x"], "pathPrefix": ["/v1", "/v2"]}`, `{}`, `global {"match":{"path":["/x","/v1","/v2","/v1/*","/v2/*"]}}`},
		{`{"methods": ["get", "POST"], "hosts": "API.example"}`, `{}`, `global {"match":{"host":"api.example","method":["GET","POST"]}}`},
		{`{"pathPrefix": "/v1"}`, `{"path": "/v1/users*"}`, `endpoint:/v1/users* {}`},
		{`{"pathPrefix": "/v1"}`, `{"path": "/v1*"}`, `global {"match":{"path":["/v1","/v1/*"]}}`},
		{`{"pathPrefix": "/v1"}`, `{"path": ["/v1/a", "/v2/b"]}`, `endpoint:/v1/a {}`},
		{`{"pathPrefix": "/v1"}`, `{"path": "*"}`, `global {"match":{"path":["/v1","/v1/*"]}}`},
		{`{"pathPrefix": "/v1"}`, `{"path": {"not": "/v1"}}`, `endpoint:/v1/* {}`},
		{`{"pathPrefix": "/v1"}`, `{"path": {"not": ["/v2*", "/v1/*"]}}`, `endpoint:/v1 {}`},
		{`{"methods": ["GET", "PUT"]}`, `{"Method": {"not": "put"}}`, `global {"match":{"Method":"GET"}}`},
		{`{"methods": ["GET", "PUT"]}`, `{"method": "get", "header:x": "1"}`, `global {"match":{"header:x":"1","method":"get"}}`},
	} {
		data := fmt.Sprintf(`{"selector": %s, "rules": [{"name": "r", "limit_keys": [], "match": %s, "algorithm_config": {"rps": 1, "burst": 5}}]}`, tt.selector, tt.match)
		s := fromFile(t, []byte(data))
		r := s.Rules[0]
		if got := r.KeyPattern + " " + strings.Join(strings.Fields(string(r.Spec)), ""); got != tt.want {
			t.Errorf("selector %s, match %s: row %s, want %s", tt.selector, tt.match, got, tt.want)
		}
		sameDecisions(t, data, load(t, []byte(data)), compile(t, s), valuesOf([]byte(data)))
	}
}

// What rows cannot say, and would make a difference, is not lost: it is refused, with
// the place.
func TestImport_RefusesToLose(t *testing.T) {
	const rule = `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 5}`
	const why = `"reason": "x", "author": "a", "expires_at": "2999-01-01T00:00:00Z"`
	for _, tt := range []struct {
		data  string
		paths []string
	}{
		{`{"selector": {"pathPrefix": "/v1"}, "rules": [` + rule + `, "match": {"path": {"not": "/v1/x"}}}]}`, []string{"/rules/0/match/path"}},
		{`{"policies": [{"id": "a", "spec": {"selector": {"hosts": "*.example"}, "rules": []}}]}`, nil}, // a mistake of its own
		{`{"policies": [{"id": "a", "spec": {"selector": {"hosts": "api*"}, "rules": [` + rule + `, "match": {"host": {"not": ["api.a"]}}}]}}]}`,
			[]string{"/policies/0/spec/rules/0/match/host"}},
		{`{"selector": {"methods": "GET", "hosts": "a"}, "rules": [` + rule + `, "match": {` + clauses(15) + `}}]}`, []string{"/rules/0/match"}},
		{`{"selector": {"pathPrefix": [` + quoted(600) + `]}, "rules": [` + rule + `}]}`, []string{"/rules/0/match/path"}},
		{`{"rules": [` + rule + `}], "overrides": [{"id": "o", "action": "block", "match": {"header:x": "1"}, ` + why + `}],
			"kill_switches": [{"scope_key": "header:x", "scope_value": "1", ` + why + `}], "global_shadow": {` + why + `}, "break_glass": {"enabled": true, ` + why + `}}`,
			[]string{"/overrides", "/kill_switches", "/global_shadow", "/break_glass"}},
		{`{"rules": [` + rule + `}], "overrides": [], "kill_switches": [], "global_shadow": {"enabled": false}}`, []string{}},
	} {
		s := &rules.Set{Revision: 1, Attributes: words()}
		err := s.Import([]byte(tt.data), true)
		found, _ := errors.AsType[policy.Errors](err)
		var paths []string
		for _, e := range found {
			paths = append(paths, e.Path)
			if tt.paths != nil && (e.Reason == "" || e.Hint == "") {
				t.Errorf("%s: %v, want a reason and a hint", tt.data, e)
			}
		}
		if tt.paths != nil && !slices.Equal(paths, tt.paths) || tt.paths == nil && err == nil {
			t.Errorf("import of %s: %v, want mistakes at %q", tt.data, err, tt.paths)
		}
		if err != nil && len(s.Rules) > 0 {
			t.Errorf("%s: %d rows in spite of %v", tt.data, len(s.Rules), err)
		}
	}
}

// clauses are so many of a match.
func clauses(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"header:x-%d": "1"`, i))
	}
	return strings.Join(list, ", ")
}

// quoted are so many paths.
func quoted(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"/%d"`, i))
	}
	return strings.Join(list, ", ")
}

func TestLeftOut(t *testing.T) {
	const list = `"rules": [{"name": "r", "description": "d", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 5}}]`
	for _, tt := range []struct{ data, want string }{
		{`{` + list + `}`, ""},
		{`{"description": "d", ` + list + `, "tests": []}`, "/tests /description"},
		{`{"bundle_version": 5, "issued_at": "2026-01-01T00:00:00Z", "expires_at": "2999-01-01T00:00:00Z", "description": "d", "tests": [],
			"policies": [{"id": "a", "spec": {` + list + `, "description": "e"}}]}`,
			"/bundle_version /issued_at /expires_at /description /tests /policies/0/spec/description"},
		{`{"id": "a", "spec": {` + list + `, "description": "e"}}`, "/spec/description"},
		{`{"description": "of the rule", "algorithm_config": {"rps": 1, "burst": 5}}`, ""},
		{`[]`, ""},
	} {
		if got := strings.Join(rules.LeftOut([]byte(tt.data)), " "); got != tt.want {
			t.Errorf("LeftOut(%s) = %q, want %q", tt.data, got, tt.want)
		}
	}
}

// A share of the keys of a rule that has one is all or nothing, as it is in the file.
func TestImport_ModeOfOneKey(t *testing.T) {
	seen := map[string]int{}
	for i := range 40 {
		data := fmt.Appendf(nil, `{"mode": "50%%", "rules": [{"name": "r%d", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 5}}]}`, i)
		s := fromFile(t, data)
		sameDecisions(t, string(data), load(t, data), compile(t, s), nil)
		seen[string(s.Rules[0].Spec)]++
	}
	if len(seen) != 2 {
		t.Errorf("specs of rules with one key at 50%%: %v, want some in shadow and some not", seen)
	}
}
