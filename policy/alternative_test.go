// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete/policy"
)

// A request that several alternatives match is charged once.
func TestAlternatives(t *testing.T) {
	for _, tc := range []struct {
		rule  string
		attrs policy.Map
		want  string // the keys
	}{
		{`"limit_keys": [], "match": [{"path": "/a"}, {"method": "POST"}]`, policy.Map{"path": "/a", "method": "POST"}, "[r:]"},
		{`"limit_keys": [], "match": [{"path": "/a"}, {"method": "POST"}]`, policy.Map{"path": "/b", "method": "POST"}, "[r:]"},
		{`"limit_keys": [], "match": [{"path": "/a"}, {"method": "POST"}]`, policy.Map{"path": "/b", "method": "GET"}, "[]"},
		{`"limit_keys": [], "match": [{"path": "/a", "method": "PUT"}, {"header:x": {"not": "*"}, "method": "GET"}]`, policy.Map{"path": "/a", "method": "GET"}, "[r:]"},
		{`"limit_keys": [], "match": [{"path": "/a", "method": "PUT"}, {"header:x": {"not": "*"}, "method": "GET"}]`, policy.Map{"path": "/a", "method": "GET", "header:x": ""}, "[]"},
		{`"limit_keys": [], "match": [{"path": "/a"}]`, policy.Map{"path": "/a"}, "[r:]"},
		{`"limit_keys": [], "match": [{"path": "/a"}, {}]`, policy.Map{"path": "/b"}, "[r:]"},
		{`"limit_keys": ["path:id"], "match": [{"path": "/a/{id}", "method": "PUT"}, {"path": "/{id}/b", "method": "GET"}]`, policy.Map{"path": "/a/b", "method": "PUT"}, "[r:id=b]"},
		{`"limit_keys": ["path:id"], "match": [{"path": "/a/{id}", "method": "PUT"}, {"path": "/{id}/b", "method": "GET"}]`, policy.Map{"path": "/a/b", "method": "GET"}, "[r:id=a]"},
		{`"limit_keys": [], "match": [{"path": "/a/{id}", "path:id": "1"}, {"path": "/{id}/b", "path:id": "a", "method": "GET"}]`, policy.Map{"path": "/a/b", "method": "GET"}, "[r:]"},
	} {
		m, err := tryLoad(`{"name": "r", ` + tc.rule + `, @}`)
		if err != nil {
			if tc.want != "error" {
				t.Errorf("%s: %v", tc.rule, err)
			}
			continue
		}
		if got := fmt.Sprint(keysOf(m, tc.attrs)); got != tc.want {
			t.Errorf("%s: %v has the keys %s, want %s", tc.rule, tc.attrs, got, tc.want)
		}
	}
}

// Overrides have alternatives, too.
func TestAlternatives_Overrides(t *testing.T) {
	m, err := load(t, `{"name": "r", "limit_keys": ["tenant"], @}`).WithOverrides([]policy.Override{
		{ID: "b", Action: policy.ActionBlock, Match: []byte(`[{"path": "/a"}, {"tenant": "x", "method": "PUT"}]`), Reason: "r", Author: "a", ExpiresAt: time.Unix(1<<32, 0)},
		{ID: "l", Action: policy.ActionLimit, Rules: []string{"r"}, Match: []byte(`[{"tenant": "y"}, {"tenant": "z*"}]`), Config: []byte(`{"rps": 5, "burst": 5}`), Reason: "r", Author: "a", ExpiresAt: time.Unix(1<<32, 0)},
	}, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		attrs policy.Map
		want  string
	}{
		{policy.Map{"tenant": "x", "path": "/a"}, "b"}, {policy.Map{"tenant": "x", "method": "PUT"}, "b"}, {policy.Map{"tenant": "x", "method": "GET"}, "r"},
		{policy.Map{"tenant": "y"}, "l"}, {policy.Map{"tenant": "zz"}, "l"},
	} {
		matches, v := m.Match(nil, tc.attrs, 0, 1)
		got := "r"
		switch {
		case v.Block != nil:
			got = v.Block.ID
		case len(matches) == 1 && matches[0].Limit.Override != nil:
			got = matches[0].Limit.Override.ID
		}
		if got != tc.want {
			t.Errorf("%v: %s decides, want %s", tc.attrs, got, tc.want)
		}
	}
	if match, _, err := m.Bucket("r:tenant=y", 1); err != nil || match.Limit.Override == nil {
		t.Errorf("bucket of y: %+v, %v", match, err)
	}
}

// An explanation names the alternative that comes closest.
func TestAlternatives_Explain(t *testing.T) {
	m := load(t, `{"name": "r", "limit_keys": [], "match": [{"path": "/a", "method": "PUT"}, {"path": "/b", "method": "GET", "host": "h"}], @}`)
	e := m.Explain(policy.Map{"path": "/b", "method": "GET", "host": "x"}, 0, 0)
	if c := e.Rules[0]; c.Outcome != policy.OutcomeUnmatched || c.Attribute.String() != "host" || c.Wants != `"h"` || c.Alternatives != 2 {
		t.Errorf("%+v", c)
	}
	if d := m.Describe()[0]; len(d.Match) != 2 || len(d.Match[1]) != 3 {
		t.Errorf("%+v", d.Match)
	}
	if got, ok := m.Sample(0); !ok || fmt.Sprint(got) != "map[method:PUT path:/a]" {
		t.Errorf("sample %v, %t", got, ok)
	}
}
