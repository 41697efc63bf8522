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

// A request without the key and without anything else that tells it from others is in
// no share of them. Under on_missing: empty it has the key of the empty value.
func TestMode_InPartWithoutTheKey(t *testing.T) {
	const rule = `{"name": "r", "limit_keys": ["k"], "mode": %q, "on_missing": %q, @}`
	for _, tc := range []struct {
		mode, onMissing string
		denied, shadow  bool
		matches         int
	}{
		{"enforce", "deny", true, false, 0}, {"99.99%", "deny", false, false, 0}, {"shadow", "deny", false, false, 0},
		{"enforce", "empty", false, false, 1}, {"99.99%", "empty", false, false, 1}, {"0.01%", "empty", false, true, 1}, {"99.99%", "skip", false, false, 0},
	} {
		m := load(t, fmt.Sprintf(rule, tc.mode, tc.onMissing))
		matches, v := m.Match(nil, policy.Map{}, 0, 0)
		if v.Denies() != tc.denied || len(matches) != tc.matches || len(matches) > 0 && matches[0].Shadow != tc.shadow {
			t.Errorf("%+v: denied %t, matches %+v", tc, v.Denies(), matches)
		}
	}
}

// In global shadow mode, no request is denied because it lacks an attribute.
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

// Of clients without the key, on_missing: deny denies the share of the mode. The clients are the same each
// time, and the clients of 10% are among the clients of 25%.
func TestMode_DeniesAShareOfClientsWithoutTheKey(t *testing.T) {
	const rule = `{"name": "r", "limit_keys": ["header:x-c"], "mode": %q, "on_missing": "deny", @}`
	const clients = 10_000
	denied := map[string][clients]bool{}
	for mode, want := range map[string]int{"10%": 1000, "25%": 2500, "99.99%": 9999} {
		m, again := load(t, fmt.Sprintf(rule, mode)), load(t, fmt.Sprintf(rule, mode))
		var those [clients]bool
		count := 0
		for i := range clients {
			client := policy.Map{"ip:address": fmt.Sprintf("10.0.%d.%d", i/250, i%250)}
			_, v := m.Match(nil, client, 0, 0)
			_, w := again.Match(nil, client, 0, 0)
			if those[i] = v.Denies(); those[i] {
				count++
			}
			if v.Denies() != w.Denies() {
				t.Errorf("%s: client %d is denied by one matcher and not by another", mode, i)
			}
		}
		if count < want-200 || count > want+200 {
			t.Errorf("%s: %d of %d clients without the key are denied, want about %d", mode, count, clients, want)
		}
		denied[mode] = those
	}
	for i := range clients {
		if denied["10%"][i] && !denied["25%"][i] {
			t.Errorf("client %d is among 10%% and not among 25%%", i)
		}
	}
}

// Requests of one IPv6 site are one client to the share of on_missing: deny.
func TestMode_WithoutTheKeyByNetwork(t *testing.T) {
	m := load(t, `{"name": "r", "limit_keys": ["header:x-c"], "mode": "50%", "on_missing": "deny", @}`)
	for site := range 50 {
		var answers [2]bool
		for i := range answers {
			_, v := m.Match(nil, policy.Map{"ip:address": fmt.Sprintf("2001:db8:0:%x::%x", site, i+1)}, 0, 0)
			answers[i] = v.Denies()
		}
		if answers[0] != answers[1] {
			t.Errorf("site %d: two of its addresses are denied differently", site)
		}
	}
}

// Two partially enforced tiers leave each other requests, because each has its own keys. Only a fully enforced
// tier takes all requests.
func TestTiers_InForceForShares(t *testing.T) {
	const rule = `{"name": %q, "limit_keys": ["ip:address"], "mode": %q, "algorithm_config": {"rps": 1, "burst": 5}}`
	for _, tc := range []struct {
		first, second string
		ok            bool
	}{
		{"50%", "10%", true}, {"10%", "50%", true}, {"50%", "50%", true}, {"0.01%", "99.99%", true}, {"shadow", "10%", true}, {"shadow", "enforce", true},
		{"50%", "enforce", true}, {"enforce", "50%", false}, {"enforce", "shadow", false}, {"50%", "shadow", false}, {"shadow", "shadow", false},
	} {
		_, err := policy.Load([]byte(`{"rules": [`+fmt.Sprintf(rule, "a", tc.first)+`, `+fmt.Sprintf(rule, "b", tc.second)+`]}`), policy.Options{})
		if (err == nil) != tc.ok {
			t.Errorf("%s before %s: %v", tc.first, tc.second, err)
		}
	}
	m := loadWhole(t, `{"rules": [`+fmt.Sprintf(rule, "a", "50%")+`, `+fmt.Sprintf(rule, "b", "10%")+`]}`)
	onlySecond := 0
	for i := range 10_000 {
		matches, _ := m.Match(nil, policy.Map{"ip:address": fmt.Sprintf("10.0.%d.%d", i/250, i%250)}, 0, 0)
		enforced := ""
		for _, match := range matches {
			if !match.Shadow {
				enforced += match.Rule.Name
			}
		}
		if enforced == "b" {
			onlySecond++
		}
	}
	if onlySecond < 300 || onlySecond > 700 {
		t.Errorf("%d of 10000 addresses are in force by the second tier alone, want about 500", onlySecond)
	}
}

// A rule without keys has one bucket, which a share exempts or not. Of two such tiers, the later one is
// unreachable exactly if matching leaves it no request.
func TestTiers_OneKeyInForceForAShare(t *testing.T) {
	const rule = `{"name": %q, "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 5}}`
	found := map[bool]int{}
	for i := range 100 {
		first, second := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
		file := func(rules string) []byte { return []byte(`{"mode": "50%", "rules": [` + rules + `]}`) }
		shadow := func(name string) bool {
			m := loadWhole(t, string(file(fmt.Sprintf(rule, name))))
			matches, _ := m.Match(nil, policy.Map{}, 0, 0)
			return matches[0].Shadow
		}
		_, err := policy.Load(file(fmt.Sprintf(rule, first)+", "+fmt.Sprintf(rule, second)), policy.Options{})
		left := shadow(first) && !shadow(second) // a tier in shadow leaves its requests to an enforced tier
		if (err == nil) != left {
			t.Errorf("tiers %s and %s: %v; left: %t", first, second, err, left)
		}
		found[left]++
	}
	if found[true] < 10 || found[false] < 10 {
		t.Errorf("%v: the test says little", found)
	}
}
