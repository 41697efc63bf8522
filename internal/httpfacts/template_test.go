// SPDX-License-Identifier: Apache-2.0

package httpfacts_test

import (
	"net/http/httptest"
	"testing"

	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/policy"
)

// An escaped slash does not move a segment boundary: the request is ambiguous if a template depends on the slash.
func TestFacts_EscapedSlashes(t *testing.T) {
	source, err := httpfacts.New(httpfacts.Config{})
	if err != nil {
		t.Fatal(err)
	}
	const limit = `"algorithm_config": {"rps": 1, "burst": 1}`
	for _, tt := range []struct {
		match, target string
		ambiguous     bool
	}{
		{`{"path": "/users/{id}/orders"}`, "/users/7/orders", false},
		{`{"path": "/users/{id}/orders"}`, "/users/7%2Forders", true},
		{`{"path": "/users/{id}/orders"}`, "/users%2f7/orders", true},
		{`{"path": "/users/{id}/orders"}`, "/users/7%5Corders", true},
		{`{"path": "/users/{id}/orders"}`, "/users/a%2Fb/orders", true},
		{`{"path": "/users/{id}/orders"}`, "/other/a%2Fb", false},
		{`{"path": "/users/{id}/orders"}`, "/users/7%20/orders", false},
		{`{"path": ["/users/{id}/orders", "/users/{id}/{x}/orders"]}`, "/users/a%2Fb/orders", true},
		{`{"path": {"not": "/users/{id}/orders"}}`, "/users/7%2Forders", true},
		{`{"path": "/files/{rest...}"}`, "/files/a%2Fb", false},
		{`{"path": "/files/{rest...}"}`, "/files%2Fa/b", true},
		{`{"path": "/files/*"}`, "/files%2Fa/b", false},
	} {
		m, err := policy.Load([]byte(`{"name": "r", "limit_keys": [], "match": `+tt.match+`, `+limit+`}`), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		facts := source.Facts(httptest.NewRequest("GET", tt.target, nil))
		facts.SetPolicy(m, 0)
		m.Match(nil, facts, 0, 0)
		if got := facts.Ambiguity(); (got != "") != tt.ambiguous {
			t.Errorf("%s, %s: ambiguity %q, want one: %t", tt.match, tt.target, got, tt.ambiguous)
		}
		facts.Release()
	}
}
