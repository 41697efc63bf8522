// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"testing"

	"github.com/metehq/mete/policy"
)

// loadWhole compiles a whole file.
func loadWhole(t *testing.T, text string) *policy.Matcher {
	t.Helper()
	m, err := policy.Load([]byte(text), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A request without the key has no part in the keys of which some are limited.
func TestMode_InPartWithoutTheKey(t *testing.T) {
	const rule = `{"name": "r", "limit_keys": ["k"], "mode": %q, "on_missing": %q, @}`
	for _, tc := range []struct {
		mode, onMissing string
		denied, shadow  bool
		matches         int
	}{
		{"enforce", "deny", true, false, 0}, {"99.99%", "deny", false, false, 0}, {"shadow", "deny", false, false, 0},
		{"enforce", "empty", false, false, 1}, {"99.99%", "empty", false, true, 1}, {"99.99%", "skip", false, false, 0},
	} {
		m := load(t, fmt.Sprintf(rule, tc.mode, tc.onMissing))
		matches, v := m.Match(nil, policy.Map{}, 0, 0)
		if v.Denies() != tc.denied || len(matches) != tc.matches || len(matches) > 0 && matches[0].Shadow != tc.shadow {
			t.Errorf("%+v: denied %t, matches %+v", tc, v.Denies(), matches)
		}
	}
}

// While all is in shadow, nobody is denied for lack of an attribute.
func TestShadowOverride_OnMissing(t *testing.T) {
	m := loadWhole(t, `{"rules": [{"name": "r", "limit_keys": ["k"], "on_missing": "deny", "algorithm_config": {"rps": 1, "burst": 1}}],
		"global_shadow": {"reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"}}`)
	if _, v := m.Match(nil, policy.Map{}, 0, 0); v.Denies() {
		t.Errorf("denied for lack of %v", v.Missing)
	}
}

// In shadow, too, fallback_limit is for what falls under no rule.
func TestFallback_BothInShadow(t *testing.T) {
	m := loadWhole(t, `{"mode": "shadow", "rules": [{"name": "r", "limit_keys": [], "match": {"a": "x"}, "algorithm_config": {"rps": 1, "burst": 1}}],
		"fallback_limit": {"algorithm_config": {"rps": 1, "burst": 1}}}`)
	for a, want := range map[string]string{"x": "r", "y": "fallback"} {
		matches, _ := m.Match(nil, policy.Map{"a": a}, 0, 0)
		if len(matches) != 1 || matches[0].Rule.Name != want || !matches[0].Shadow {
			t.Errorf("a=%s: %+v, want %s in shadow", a, matches, want)
		}
	}
}

// A stage begins when its share is used, and not before.
func TestStages_BeginAtTheShare(t *testing.T) {
	l := &load(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 10, "staged_actions": [{"threshold": 33.333, "action": "warn"}]}}`).Rules()[0].Limits[0]
	if got := l.Stages[0].At; got != 3334 {
		t.Errorf("33.333%% of 10 tokens begin at %d thousandths, want 3334", got)
	}
}
