// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

const usageCostPolicy = `{
	"prices": {"version": "1", "models": {"a": {"input": 100000, "output": 200000}, "b": {"input": 300000, "output": 300000}}},
	"rules": [
		{"name": "tokens", "limit_keys": [], "rate": "100/1h", "cost_source": "ai:tokens", "weights": {"input": 0.5, "output": 4}, "min_cost": 2, "max_cost": 90, "group": "t"},
		{"name": "money", "limit_keys": [], "rate": "100/1h", "cost_source": "ai:money", "group": "m"},
		{"name": "errors", "limit_keys": [], "rate": "100/1h", "cost_source": "ai:tokens", "charge_on": {"status": ["5xx"]}, "group": "e"},
		{"name": "requests", "limit_keys": [], "rate": "100/1h", "group": "r"}
	]
}`

// TestUsageCost writes and reads the cost of each limit.
func TestUsageCost(t *testing.T) {
	m, err := policy.Load([]byte(usageCostPolicy), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	usage := policy.TokenUsage{Input: 3, Output: 2}
	for i, want := range []bucket.Tokens{9_500, 700, 0} {
		l := &m.Rules()[i].Limits[0]
		cost, ok := l.UsageCost("a")
		if got := cost.Of(&usage); !ok || got != want {
			t.Errorf("%s costs %v, %v; want %v", m.Rules()[i].Name, got, ok, want)
		}
		text := cost.Append(nil)
		read, rest, ok := policy.ReadUsageCost(append(text, 7))
		if !ok || read != cost || string(rest) != "\x07" {
			t.Errorf("%s: read %+v, %v with the rest %q; want %+v", m.Rules()[i].Name, read, ok, rest, cost)
		}
		for n := range text {
			if _, _, ok := policy.ReadUsageCost(text[:n]); ok {
				t.Errorf("%s: %d of %d bytes are valid", m.Rules()[i].Name, n, len(text))
			}
		}
		want = map[bool]bucket.Tokens{true: 1_500, false: want}[l.Money()]
		other := cost.WithModel(m, m.Rules()[i].Name, "b")
		if got := other.Of(&usage); got != want {
			t.Errorf("%s costs %v with another model, want %v", m.Rules()[i].Name, got, want)
		}
		if gone := cost.WithModel(m, "gone", "b"); gone != cost || cost.WithModel(m, "tokens", "b") != cost {
			t.Errorf("%s: without prices, the cost changed to %+v", m.Rules()[i].Name, gone)
		}
	}
	if _, ok := m.Rules()[3].Limits[0].UsageCost("a"); ok {
		t.Error("a limit of requests has the cost of a usage")
	}
	if _, _, ok := policy.ReadUsageCost([]byte(strings.Repeat("\xff", 9) + "\x01\x00\x00\x00\x00\x00\x00\x00")); ok {
		t.Error("a weight above the bound is valid")
	}
}

func TestTokenUsage_Set(t *testing.T) {
	var u policy.TokenUsage
	for i, class := range policy.TokenClasses() {
		if err := u.Set(class, string(rune('1'+i))); err != nil {
			t.Error(err)
		}
	}
	if want := (policy.TokenUsage{Input: 1, Cached: 2, CacheWrite: 3, Output: 4, Reasoning: 5}); u != want || u.Check() != nil {
		t.Errorf("%+v, want %+v", u, want)
	}
	for _, tt := range []struct{ class, text, want string }{
		{"inputs", "1", `usage: unknown class "inputs": write input, cached, cache_write, output or reasoning`},
		{"input", "-1", "usage: input is -1: must be between 0 and 1000000000: send the tokens of one request"},
		{"output", "1000000001", "usage: output is 1000000001: must be between 0 and 1000000000: send the tokens of one request"},
		{"output", "99999999999999999999", "usage: output is 99999999999999999999: must be between 0 and 1000000000: send the tokens of one request"},
		{"cached", "1.5", `usage: cached is "1.5": write a whole number of tokens, such as 812`},
		{"cached", "", `usage: cached is "": write a whole number of tokens, such as 812`},
	} {
		if err := u.Set(tt.class, tt.text); err == nil || err.Error() != tt.want {
			t.Errorf("%s=%s: error %v, want %s", tt.class, tt.text, err, tt.want)
		}
	}
	for _, bad := range []policy.TokenUsage{{Input: -1}, {Reasoning: 1_000_000_001}} {
		if bad.Check() == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}
