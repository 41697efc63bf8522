// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/lint"
)

var ruleInQuotes = regexp.MustCompile(`rule "(r\d)"`)

// idleRules returns the rules that warnings report as never reached.
func idleRules(m *policy.Matcher) map[string]string {
	idle := map[string]string{}
	for _, w := range lint.Check(m, lintNow) {
		said := ruleInQuotes.FindAllStringSubmatch(w.Reason, -1)
		switch w.Code {
		case "overlapping-rules":
			idle[said[0][1]] = w.Reason
		case "catch-all-tier":
			idle[said[1][1]] = w.Reason
		}
	}
	return idle
}

// A rule that is reported as never reached denies no request that the others admit.
func TestLint_NeverReachedRules(t *testing.T) {
	const seed = 11
	rnd := rand.New(testseed.PCG(seed, 0))
	said := 0
	for round := range 6000 {
		var rules []string
		for i := range 2 + rnd.IntN(3) {
			keys := []string{`[]`, `["query:a"]`, `["query:a", "query:b"]`, `["query:b"]`}[rnd.IntN(4)]
			match := []string{`{}`, `{}`, `{"path": "/x*"}`, `{"path": "/x/y"}`, `{"query:c": {"not": "1"}}`}[rnd.IntN(5)]
			mode := []string{"enforce", "enforce", "enforce", "shadow", "50%"}[rnd.IntN(5)]
			if mode == "50%" && keys == "[]" {
				mode = "off"
			}
			rules = append(rules, fmt.Sprintf(`{"name": "r%d", "group": "g%d", "limit_keys": %s, "match": %s, "mode": %q, "on_missing": %q, "limits": [%s]}`,
				i, rnd.IntN(3), keys, match, mode, []string{"skip", "empty"}[rnd.IntN(2)], randomLimit(rnd)))
		}
		text := `{"rules": [` + strings.Join(rules, ",\n") + `]}`
		m, err := policy.Load([]byte(text), policy.Options{})
		if err != nil {
			continue // a rule that can never match
		}
		if idle := idleRules(m); len(idle) > 0 {
			said += len(idle)
			if rule := deniesAloneIn(rnd, m, idle); rule != "" {
				t.Fatalf("seed %d, round %d: %s\n%s\nbut %s alone denies a request", seed, round, text, idle[rule], rule)
			}
		}
	}
	if said < 200 {
		t.Errorf("said of %d rules: the test says little", said)
	}
}

// deniesAloneIn plays random requests and returns a rule of idle that denies one
// which all others admit.
func deniesAloneIn(rnd *rand.Rand, m *policy.Matcher, idle map[string]string) string {
	states := map[string]bucket.State{}
	now := bucket.Instant(1_800_000_000_000_000)
	rush := 1 + rnd.Int64N(800_000)
	for range 400 {
		now += bucket.Instant(rnd.Int64N(rush))
		attrs := policy.Map{"path": []string{"/x", "/x/y", "/z"}[rnd.IntN(3)]}
		for _, name := range []string{"query:a", "query:b", "query:c"} {
			if v := rnd.IntN(4); v > 0 {
				attrs[name] = fmt.Sprint(min(v, 2))
			}
		}
		matches, _ := m.Match(nil, attrs, 0, now)
		next, deny := map[string]bucket.State{}, []string(nil)
		for _, match := range matches {
			if match.Shadow {
				continue
			}
			state, shown := match.Limit.Bucket.ForKey(match.Key).Take(states[match.Key], now, match.Cost)
			if next[match.Key] = state; !shown.Allowed {
				deny = append(deny, match.Rule.Name)
			}
		}
		switch {
		case len(deny) == 1 && idle[deny[0]] != "":
			return deny[0]
		case len(deny) == 0:
			for key, state := range next {
				states[key] = state
			}
		}
	}
	return ""
}
