// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// keysOf returns the keys of the buckets of a request.
func keysOf(m *policy.Matcher, attrs policy.Map) (keys []string) {
	matches, _ := m.Match(nil, attrs, 0, 0)
	for _, match := range matches {
		keys = append(keys, match.Key)
	}
	return keys
}

func TestTemplates(t *testing.T) {
	for _, tc := range []struct{ rule, path, want string }{ // want has the keys
		{`"limit_keys": ["path:id"], "match": {"path": "/users/{id}/orders"}`, "/users/7/orders", "[r:id=7]"},
		{`"limit_keys": ["path:id"], "match": {"path": "/users/{id}/orders"}`, "/users/7/orders/", "[]"},
		{`"limit_keys": ["path:id"], "match": {"path": "/users/{id}/orders"}`, "/users/a b|c/orders", "[r:id=a%20b%7Cc]"},
		{`"limit_keys": ["path:rest"], "match": {"path": "/files/{rest...}"}`, "/files/a/b", "[r:rest=a/b]"},
		{`"limit_keys": ["path:rest"], "match": {"path": "/files/{rest...}"}`, "/files/", "[r:rest=]"},
		{`"limit_keys": ["path:rest"], "match": {"path": "/files/{rest...}"}`, "/files", "[]"},
		{`"limit_keys": ["path:b", "path:a"], "match": {"path": "/{a}/{b}"}`, "/x/y", "[r:b=y|a=x]"},
		{`"limit_keys": ["path:id"], "match": {"path": ["/users/{id}", "/orgs/{org}/users/{id}"]}`, "/orgs/o/users/7", "[r:id=7]"},
		{`"limit_keys": ["path:id"], "match": {"path": ["/a/{id}", "/b/{id}", "/c/{id}", "/d/{id}", "/e/{id}", "/f/{id}", "/g/{id}", "/h/{id}", "/i/{id}", "/j/{id}"]}`, "/j/7", "[r:id=7]"},
		{`"limit_keys": ["path:id"], "match": {"path": "/users/{id}", "path:id": {"not": ["me", "admin*"]}}`, "/users/me", "[]"},
		{`"limit_keys": ["path:id"], "match": {"path": "/users/{id}", "path:id": {"not": ["me", "admin*"]}}`, "/users/7", "[r:id=7]"},
		{`"limit_keys": [], "match": {"path:id": "7*", "path": "/users/{id}"}`, "/users/78", "[r:]"},
		{`"limit_keys": [], "match": {"path:id": "7*", "path": "/users/{id}"}`, "/users/87", "[]"},
		{`"limit_keys": [], "match": {"path": {"not": "/health/{check}"}}`, "/health/db", "[]"},
		{`"limit_keys": [], "match": {"path": {"not": "/health/{check}"}}`, "/health", "[r:]"},
		{`"limit_keys": [], "match": {"path": ["/users/{id}", "/users", "/v1/*"]}`, "/v1/x", "[r:]"},
		{`"limit_keys": ["path:id"], "slot_by": "path:id", "match": {"path": "/users/{id}"}`, "/users/7", "[{7}r:id=7]"},
	} {
		m := load(t, `{"name": "r", `+tc.rule+`, @}`)
		if got := fmt.Sprint(keysOf(m, policy.Map{"path": tc.path, "path:id": "made-up"})); got != tc.want {
			t.Errorf("%s: path %s has the keys %s, want %s", tc.rule, tc.path, got, tc.want)
		}
	}
}

// The same attribute has the text of each rule's own template.
func TestTemplates_OfEachRule(t *testing.T) {
	m := load(t,
		`{"name": "users", "limit_keys": ["path:id"], "group": "a", "match": {"path": "/{kind}/{id}"}, @}`,
		`{"name": "kinds", "limit_keys": ["path:id"], "group": "b", "match": {"path": "/{id}/{rest...}"}, @}`,
		`{"name": "all", "limit_keys": ["path"], @}`)
	if got := fmt.Sprint(keysOf(m, policy.Map{"path": "/users/7"})); got != "[users:id=7 kinds:id=users all:path=/users/7]" {
		t.Errorf("keys %s", got)
	}
}

func TestTemplates_Cost(t *testing.T) {
	m, err := policy.Load([]byte(`{"name": "r", "limit_keys": [], "match": {"path": "/rooms/{id}/messages/{count}"},
		"algorithm_config": {"rps": 1, "burst": 100, "cost_source": "attribute:path:count", "max_cost": 50}}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bucket.Tokens{"/rooms/1/messages/7": 7000, "/rooms/1/messages/x": 1000, "/rooms/1/messages/70": 50000} {
		if matches, _ := m.Match(nil, policy.Map{"path": path}, 0, 0); len(matches) != 1 || matches[0].Cost != want {
			t.Errorf("%s: matches %+v, want the cost %v", path, matches, want)
		}
	}
}

// Overrides of a rule can match what it captures.
func TestTemplates_Overrides(t *testing.T) {
	m := load(t,
		`{"name": "users", "limit_keys": ["path:id"], "match": {"path": "/users/{id}"}, @}`,
		`{"name": "orders", "limit_keys": ["path:id"], "group": "o", "match": {"path": "/users/{id}/orders/{order}"}, @}`)
	o := func(id string, action policy.Action, match, config string, rules ...string) policy.Override {
		return policy.Override{ID: id, Action: action, Rules: rules, Match: []byte(match), Config: []byte(config), Reason: "r", Author: "a", ExpiresAt: time.Unix(1<<32, 0)}
	}
	m, err := m.WithOverrides([]policy.Override{
		o("more", policy.ActionLimit, `{"path:id": "7"}`, `{"rps": 9, "burst": 99}`, "users"),
		o("off", policy.ActionAllow, `{"path:id": "8*"}`, "", "users", "orders"),
		o("bad", policy.ActionBlock, `{"path": "/users/{id}/orders/13"}`, ""),
	}, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/users/7": "users more", "/users/6": "users", "/users/80": "", "/users/81/orders/1": "", "/users/7/orders/1": "orders", "/users/7/orders/13": "blocked",
	} {
		got := ""
		matches, v := m.Match(nil, policy.Map{"path": path}, 0, 1)
		if v.Block != nil {
			got = "blocked"
		}
		for _, match := range matches {
			if got = match.Rule.Name; match.Limit.Override != nil {
				got += " " + match.Limit.Override.ID
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	// The key names what the override needs to know.
	if match, _, err := m.Bucket("users:id=7", 1); err != nil || match.Limit.Override == nil || match.Limit.Override.ID != "more" {
		t.Errorf("bucket users:id=7: %+v, %v", match, err)
	}
}

// A sample is a path that the rule matches, without attributes that no request has.
func TestTemplates_Sample(t *testing.T) {
	m := load(t,
		`{"name": "me", "limit_keys": ["path:id"], "match": {"path": "/users/{id}", "path:id": "x*"}, @}`,
		`{"name": "others", "limit_keys": ["path:id"], "match": {"path": "/users/{id}"}, @}`)
	for i, want := range []string{"map[path:/users/x]", "map[path:/users/a]"} {
		if got, ok := m.Sample(i); !ok || fmt.Sprint(got) != want {
			t.Errorf("sample %v, %t, want %s", got, ok, want)
		}
	}
}

func TestParseAttribute_Captured(t *testing.T) {
	if _, err := policy.ParseAttribute("path:id"); err == nil || !strings.Contains(err.Error(), "write path") {
		t.Errorf("error %v", err)
	}
}
