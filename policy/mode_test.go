// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/metehq/mete/policy"
)

func TestMode(t *testing.T) {
	for text, want := range map[string]string{
		"enforce": "enforce", "shadow": "shadow", "off": "off", "0%": "shadow", "100%": "enforce", "25%": "25%", "0.01%": "0.01%", "99.99%": "99.99%", "2.50%": "2.5%",
	} {
		m := load(t, fmt.Sprintf(`{"name": "r", "limit_keys": ["path"], "mode": %q, @}`, text))
		if got := m.Rules()[0].Mode; got.String() != want || got.IsPartial() != (want[len(want)-1] == '%') {
			t.Errorf("mode %s is %v, partial %t; want %s", text, got, got.IsPartial(), want)
		}
	}
	for _, text := range []string{`"25"`, `"-1%"`, `"101%"`, `"0.001%"`, `"%"`, `"1e1000000%"`, `"1/2%"`, `25`, `true`, `"Off"`, `""`, `null`} {
		if _, err := tryLoad(`{"name": "r", "limit_keys": ["path"], "mode": ` + text + `, @}`); err == nil {
			t.Errorf("mode %s is accepted", text)
		}
	}
	if _, err := tryLoad(`{"name": "r", "limit_keys": [], "mode": "25%", @}`); err == nil {
		t.Error("a share of the one key that there is, is accepted")
	}
}

// sides are, for each of many keys, whether the rule is enforced for it.
func sides(t *testing.T, mode, rule string) (enforced map[string]bool, share float64) {
	t.Helper()
	m := load(t, fmt.Sprintf(`{"name": %q, "limit_keys": ["path"], "mode": %q, @}`, rule, mode))
	enforced = map[string]bool{}
	const keys = 20_000
	for i := range keys {
		path := fmt.Sprintf("/%d", i)
		matches, _ := m.Match(nil, policy.Map{"path": path}, 0, 0)
		if len(matches) != 1 {
			t.Fatalf("%s: %d matches, want 1", path, len(matches))
		}
		if !matches[0].Shadow {
			enforced[path] = true
		}
	}
	return enforced, float64(len(enforced)) / keys
}

// A share of the keys has about the right size and is stable. It contains the keys of smaller shares; another
// rule has other keys.
func TestMode_Share(t *testing.T) {
	before := map[string]bool{}
	for _, mode := range []string{"0%", "1%", "10%", "25%", "50%", "99%", "100%"} {
		got, share := sides(t, mode, "r")
		var want float64
		fmt.Sscanf(mode, "%f", &want)
		want /= 100
		if tolerance := 5 * math.Sqrt(want*(1-want)/20_000); math.Abs(share-want) > tolerance {
			t.Errorf("mode %s is enforced for %.4f of the keys", mode, share)
		}
		for path := range before {
			if !got[path] {
				t.Fatalf("%s was enforced before mode %s, and is not any more", path, mode)
			}
		}
		before = got
	}
	a, _ := sides(t, "50%", "a")
	b, _ := sides(t, "50%", "b")
	both := 0
	for path := range a {
		if b[path] {
			both++
		}
	}
	if share := float64(both) / 20_000; math.Abs(share-0.25) > 0.02 {
		t.Errorf("two rules are both enforced for %.3f of the keys, want a quarter: they must not pick the same", share)
	}
}

// Which keys they are is a part of what a policy means: it must never change.
func TestMode_ShareStays(t *testing.T) {
	m := load(t, `{"name": "r", "limit_keys": ["path"], "mode": "50%", @}`)
	got := ""
	for i := range 32 {
		matches, _ := m.Match(nil, policy.Map{"path": fmt.Sprintf("/%d", i)}, 0, 0)
		if got += "e"; matches[0].Shadow {
			got = got[:len(got)-1] + "s"
		}
	}
	if want := "eeeeesssseeesesseseeseeesseseese"; got != want {
		t.Errorf("sides are\n%s, want\n%s", got, want)
	}
}

// For exempt keys, a partially enforced rule is in shadow: the next tier applies.
func TestMode_ShareAmongTiers(t *testing.T) {
	m := load(t, `{"name": "new", "limit_keys": ["path"], "mode": "50%", @}`, `{"name": "old", "limit_keys": ["path"], @}`)
	seen := map[string]int{}
	for i := range 1000 {
		matches, _ := m.Match(nil, policy.Map{"path": fmt.Sprintf("/%d", i)}, 0, 0)
		text := ""
		for _, match := range matches {
			text += fmt.Sprintf("%s %t ", match.Rule.Name, match.Shadow)
		}
		seen[text]++
	}
	if len(seen) != 2 || seen["new false "] < 400 || seen["new true old false "] < 400 {
		t.Errorf("matches are %v, want about as many of new as of new in shadow and old", seen)
	}
}

// A rule that is off is ignored. The mode of a policy applies to all its rules.
func TestMode_Off(t *testing.T) {
	m := load(t, `{"name": "off", "limit_keys": [], "mode": "off", @}`, `{"name": "on", "limit_keys": [], @}`)
	if got, _ := names(t, m, policy.Map{}); fmt.Sprint(got) != "[on]" || len(m.Rules()) != 2 {
		t.Errorf("rules %v of %d, want [on] of 2", got, len(m.Rules()))
	}
	m, err := policy.Load([]byte(`{"mode": "off", "rules": [{"name": "r", "limit_keys": ["ip:address"], "on_missing": "deny", "mode": "enforce",
		"algorithm_config": {"rps": 1, "burst": 1}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, missing := names(t, m, policy.Map{}); len(got) > 0 || missing != "" {
		t.Errorf("rules %v, missing %q, want none", got, missing)
	}
}

// The weaker of a rule's and its policy's mode counts.
func TestMode_OfThePolicy(t *testing.T) {
	for _, tc := range [][3]string{{"enforce", "25%", "25%"}, {"25%", "enforce", "25%"}, {"25%", "10%", "10%"}, {"shadow", "25%", "shadow"}, {"25%", "off", "off"}} {
		m, err := policy.Load(fmt.Appendf(nil, `{"mode": %q, "rules": [{"name": "r", "limit_keys": ["path"], "mode": %q, "algorithm_config": {"rps": 1, "burst": 1}}]}`,
			tc[0], tc[1]), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Rules()[0].Mode.String(); got != tc[2] {
			t.Errorf("policy %s, rule %s: mode %s, want %s", tc[0], tc[1], got, tc[2])
		}
	}
}
