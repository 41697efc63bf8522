// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policy"
)

func TestHas(t *testing.T) {
	for _, tt := range []struct {
		match string
		yes   []string
		no    []string
	}{
		{`{"has": "admin"}`, []string{"admin", "admin ops", "ops admin", "ops  admin", " admin "}, []string{"", "-", "admins", "ops", "xadmin"}},
		{`{"has": ["admin", "owner"]}`, []string{"owner", "x owner"}, []string{"", "ops"}},
		{`{"has": "team:*"}`, []string{"team:", "x team:7"}, []string{"team", "xteam:7"}},
		{`{"not": {"has": "admin"}}`, []string{"", "-", "ops", "admins"}, []string{"admin", "ops admin"}},
		{`{"has": 7}`, []string{"7", "1 7"}, []string{"77"}},
	} {
		for _, name := range []string{"jwt:roles", "roles"} {
			m := loadText(t, fmt.Sprintf(`{"rules": [{"name": "r", "limit_keys": [], "match": {%q: %s}, "rate": "1/1s"}]}`, name, tt.match))
			check := func(values []string, want int) {
				for _, value := range values {
					attrs := policy.Map{name: value}
					if value == "-" {
						attrs = nil
					}
					if matches, _ := m.Match(nil, attrs, 0, 1); len(matches) != want {
						t.Errorf("%s: %s with %q matches %d times, want %d", name, tt.match, value, len(matches), want)
					}
					if got := m.Explain(attrs, 0, 1); len(got.Matches) != want {
						t.Errorf("%s: %s with %q is explained with %d matches, want %d", name, tt.match, value, len(got.Matches), want)
					}
				}
			}
			check(tt.yes, 1)
			check(tt.no, 0)
			for _, a := range m.Attributes() {
				if a.String() != name {
					t.Errorf("the policy reads %v, want only %s", a, name)
				}
			}
		}
	}
}

func TestHas_Bad(t *testing.T) {
	for match, want := range map[string]string{
		`{"jwt:roles": {"has": "two words"}}`:                      "text without spaces",
		`{"jwt:roles": {"has": ""}}`:                               "text without spaces",
		`{"jwt:roles": {"has": "*"}}`:                              "text without spaces",
		`{"jwt:roles": {"has": {"not": "a"}}}`:                     "has must be a value or a list of values",
		`{"jwt:roles": {"has": "a", "not": "b"}}`:                  `either has or not`,
		`{"jwt:roles": {"not": {"not": "a"}}}`:                     "not must not contain another not",
		`{"jwt:roles": {"contains": "a"}}`:                         `unknown field "contains"`,
		`{"jwt:roles": {}}`:                                        `field "not" is missing`,
		`{"header:accept": {"has": "a"}}`:                          "header:accept has one value",
		`{"path": {"has": "/a"}}`:                                  "path has one value",
		`{"path": "/{id}", "path:id": {"has": "a"}}`:               "path:id has one value",
		`[{"jwt:roles": {"has": []}}, {"jwt:roles": {"has": []}}]`: "must not be empty",
	} {
		_, err := policy.Load([]byte(`{"rules": [{"name": "r", "limit_keys": [], "match": `+match+`, "rate": "1/1s"}]}`), policy.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", match, err, want)
		}
	}
}

// Rules that different values choose do not exclude each other, and not covers nothing that has may want.
func TestHas_Tiers(t *testing.T) {
	m := loadText(t, `{"rules": [
		{"name": "staff", "limit_keys": [], "match": {"jwt:roles": {"has": ["admin", "support"]}}, "rate": "3/1s"},
		{"name": "partner", "limit_keys": [], "match": {"jwt:roles": {"has": "partner"}}, "rate": "2/1s"},
		{"name": "user", "limit_keys": [], "match": {"jwt:roles": {"not": {"has": "guest"}}}, "rate": "1/1s"},
		{"name": "guest", "limit_keys": [], "match": {"jwt:roles": {"has": "guest"}}, "rate": "1/1m"}]}`)
	for roles, want := range map[string]string{"guest partner admin": "staff", "guest partner": "partner", "guest": "guest", "x": "user", "": "user"} {
		if matches, _ := m.Match(nil, policy.Map{"jwt:roles": roles}, 0, 1); len(matches) != 1 || matches[0].Rule.Name != want {
			t.Errorf("roles %q: %+v, want %s", roles, matches, want)
		}
	}
	for i, want := range []string{"admin", "partner", "", "guest"} {
		if sample, ok := m.Sample(i); !ok || sample["jwt:roles"] != want {
			t.Errorf("sample %d is %v, %t; want roles %q", i, sample, ok, want)
		}
	}
	e := m.Explain(policy.Map{"jwt:roles": "x y"}, 0, 1)
	if c := e.Rules[0]; c.Attribute.String() != "jwt:roles" || c.Value != "x y" || c.Wants != `has "admin" or "support"` {
		t.Errorf("explained by %v = %q, wants %s", c.Attribute, c.Value, c.Wants)
	}
	_, err := policy.Load([]byte(`{"rules": [
		{"name": "a", "limit_keys": [], "match": {"jwt:roles": {"has": ["x", "y"]}}, "rate": "3/1s"},
		{"name": "b", "limit_keys": [], "match": {"jwt:roles": {"has": ["y", "x"]}, "method": "GET"}, "rate": "2/1s"}]}`), policy.Options{})
	if err == nil || !strings.Contains(err.Error(), `rule "b" can never match: rule "a" matches all its requests first`) {
		t.Errorf("error %v, want that b can never match", err)
	}
}

// The values of one claim can choose many rules of different groups.
func TestHas_Charges(t *testing.T) {
	var rules []string
	for i := range policy.MaxMatches + 1 {
		rules = append(rules, fmt.Sprintf(`{"name": "r%d", "group": "r%d", "limit_keys": [], "match": {"jwt:roles": {"has": "r%d"}}, "rate": "1/1s"}`, i, i, i))
	}
	_, err := policy.Load([]byte(`{"rules": [`+strings.Join(rules, ",")+`]}`), policy.Options{})
	if err == nil || !strings.Contains(err.Error(), "limits could apply to one request") {
		t.Errorf("error %v, want too many limits", err)
	}
}

// Overrides can name values, also in a matcher with other overrides or another hash key.
func TestHas_Overrides(t *testing.T) {
	m := loadText(t, `{"rules": [{"name": "r", "limit_keys": [], "match": {"jwt:roles": {"has": "user"}}, "rate": "1/1s"}]}`)
	o := policy.Override{ID: "o", Action: policy.ActionBlock, Match: []byte(`{"jwt:groups": {"has": "banned"}}`), Reason: "r", Author: "a", ExpiresAt: time.Unix(1<<32, 0)}
	m, err := m.WithOverrides([]policy.Override{o}, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*policy.Matcher{m, m.WithHashKey([]byte("k"))} {
		if _, v := m.Match(nil, policy.Map{"jwt:roles": "user", "jwt:groups": "x banned"}, 0, 1); v.Block == nil {
			t.Error("the override did not block")
		}
		if matches, v := m.Match(nil, policy.Map{"jwt:roles": "x user", "jwt:groups": "x"}, 0, 1); v.Block != nil || len(matches) != 1 {
			t.Errorf("%+v, %+v: want the rule and no block", matches, v)
		}
		if !m.Enforces(mustAttribute(t, "jwt:groups"), 1) {
			t.Error("the policy does not depend on jwt:groups")
		}
	}
	_, err = policy.Load([]byte(`{"rules": [{"name": "r", "limit_keys": ["jwt:roles"], "rate": "1/1s"}], "overrides": [
		{"id": "o", "action": "limit", "rules": ["r"], "match": {"jwt:roles": {"has": "a"}}, "rate": "2/1s", "reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"}]}`), policy.Options{})
	if err == nil || !strings.Contains(err.Error(), "match by limit_keys of the rule only") {
		t.Errorf("error %v, want that the override splits a bucket", err)
	}
}

func mustAttribute(t *testing.T, name string) policy.Attribute {
	a, err := policy.ParseAttribute(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A rule that is refused because it can never match has no request.
func TestHas_UnreachableIsSound(t *testing.T) {
	const seed = 5
	rnd := rand.New(testseed.PCG(seed, 0))
	words, refused := []string{"a", "b", "c"}, 0
	clause := func() string {
		list := fmt.Sprintf(`{"has": ["%s", "%s"]}`, words[rnd.IntN(3)], words[rnd.IntN(3)])
		if rnd.IntN(3) == 0 {
			list = `{"not": ` + list + "}"
		}
		return fmt.Sprintf(`{"jwt:%s": %s, "jwt:%s": %s}`, "x", list, "y", strings.Replace(list, `"a"`, `"`+words[rnd.IntN(3)]+`"`, 1))
	}
	for range 400 {
		var rules, alone []string
		for i := range 6 {
			match := clause()
			rules = append(rules, fmt.Sprintf(`{"name": "r%d", "limit_keys": [], "match": %s, "rate": "1/1s"}`, i, match))
			alone = append(alone, fmt.Sprintf(`{"name": "r%d", "group": "r%d", "limit_keys": [], "match": %s, "rate": "1/1s"}`, i, i, match))
		}
		_, err := policy.Load([]byte(`{"rules": [`+strings.Join(rules, ",")+`]}`), policy.Options{})
		var es policy.Errors
		if !errors.As(err, &es) {
			continue
		}
		m := loadText(t, `{"rules": [`+strings.Join(alone, ",")+`]}`)
		for x := range 8 {
			for y := range 8 {
				pick := func(bits int) (text string) {
					for i, w := range words {
						if bits>>i&1 == 1 {
							text += " " + w
						}
					}
					return text
				}
				matches, _ := m.Match(nil, policy.Map{"jwt:x": pick(x), "jwt:y": pick(y)}, 0, 1)
				for _, e := range es {
					if len(matches) > 0 && e.Path == "/rules/"+strings.TrimPrefix(matches[0].Rule.Name, "r") {
						t.Fatalf("seed %d: %s\n%v: but %d %d reaches it first", seed, rules, e, x, y)
					}
				}
			}
		}
		refused += len(es)
	}
	if refused < 50 {
		t.Errorf("%d rules were refused: the test says little", refused)
	}
}
