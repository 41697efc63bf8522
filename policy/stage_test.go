// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

func TestStages(t *testing.T) {
	m := load(t, `{"name": "r", "limit_keys": [], "algorithm": "cost_based", "algorithm_config": {"budget": 7, "period": "1d", "staged_actions": [
		{"threshold": 50, "action": "warn"}, {"threshold_percent": 80.5, "action": "throttle", "delay_ms": 250}, {"threshold": 90, "action": "throttle", "delay": "1s"},
		{"threshold": 100, "action": "reject"}]}}`)
	l := &m.Rules()[0].Limits[0]
	if l.Reason != "budget_exceeded" || l.Bucket.Capacity() != 7*bucket.Token || l.Bucket.Algorithm() != bucket.AlgorithmStepped || !m.Delays() {
		t.Errorf("limit %+v, delays %t", l, m.Delays())
	}
	for used, want := range map[bucket.Tokens]string{0: "", 3499: "", 3500: "50% 0s", 5634: "50% 0s", 5635: "80.5% 250ms", 6299: "80.5% 250ms", 6300: "90% 1s", 7000: "90% 1s"} {
		got := ""
		if s := l.Stage(used); s != nil {
			got = s.Share + " " + s.Delay.String()
		}
		if got != want {
			t.Errorf("at %v used: stage %q, want %q", used, got, want)
		}
	}
}

func TestStages_Bad(t *testing.T) {
	for _, tc := range []struct{ stages, want string }{
		{`[]`, "must not be empty"},
		{`{}`, "must be a list"},
		{`[{"action": "warn"}]`, `"threshold" is missing`},
		{`[{"threshold": 50}]`, `"action" is missing`},
		{`[{"threshold": 101, "action": "warn"}]`, "between 0 and 100"},
		{`[{"threshold": -1, "action": "warn"}]`, "above 0"},
		{`[{"threshold": "x", "action": "warn"}]`, "must be a number"},
		{`[{"threshold": 50, "action": "warn"}, {"threshold": 50, "action": "warn"}]`, "must increase"},
		{`[{"threshold": 50, "action": "wran"}]`, `did you mean "warn"`},
		{`[{"threshold": 50, "action": "reject"}]`, "threshold of 100"},
		{`[{"threshold": 100, "action": "warn"}]`, "no tokens are left"},
		{`[{"threshold": 50, "action": "throttle"}]`, `"delay" is missing`},
		{`[{"threshold": 50, "action": "throttle", "delay": "31s"}]`, "at most 30s"},
		{`[{"threshold": 50, "action": "throttle", "delay": "0s"}]`, "above 0"},
		{`[{"threshold": 50, "action": "throttle", "delay": "1s", "delay_ms": 5}]`, "contradicts"},
		{`[{"threshold": 50, "action": "warn", "delay": "1s"}]`, "only action: throttle"},
		{`[{"threshold": 50, "action": "warn", "x": 1}]`, "unknown field"},
		{`[5]`, "must be an object"},
	} {
		_, err := tryLoad(`{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 10, "staged_actions": ` + tc.stages + `}}`)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", tc.stages, err, tc.want)
		}
	}
}

// An error in one stage does not hide errors in other stages.
func TestStages_AllMistakes(t *testing.T) {
	_, err := tryLoad(`{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 10, "staged_actions": [
		{"threshold": 120, "action": "warn"}, 5, {"threshold": 50, "action": "explode"}, {"threshold": "x", "action": "throttle", "delay": "99h"},
		{"threshold": 40, "action": "reject"}, {"action": "warn", "delay": "1s"}, {"threshold": 60}]}}`)
	for _, want := range []string{
		"staged_actions/0/threshold: threshold must be between", "staged_actions/1: a stage must be", "staged_actions/2/action: action must be",
		"staged_actions/3/threshold: threshold must be a number", "staged_actions/3/delay: delay must be",
		"staged_actions/4/threshold: the thresholds of stages must increase", "staged_actions/4/action: action: reject requires",
		`staged_actions/5: field "threshold" is missing`, "staged_actions/5: only action: throttle", `staged_actions/6: field "action" is missing`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want also %q", err, want)
		}
	}
}

// Weekly budgets begin on Monday, and daily budgets at midnight UTC, unless start is set.
func TestBudget_Begins(t *testing.T) {
	for config, want := range map[string]time.Duration{
		`"period": "1d"`: 0, `"period": "1h"`: 0, `"period": "7d"`: 4 * 24 * time.Hour, `"period": "1w"`: 4 * 24 * time.Hour,
		`"period": "7d", "start": "3d"`: 3 * 24 * time.Hour, `"period": "1d", "start": "7h"`: 7 * time.Hour,
	} {
		m := load(t, `{"name": "r", "limit_keys": [], "algorithm": "cost_based", "algorithm_config": {"budget": 7, `+config+`}}`)
		if got := m.Rules()[0].Limits[0].Bucket.Start(); got != want {
			t.Errorf("%s: begins %v after the epoch, want %v", config, got, want)
		}
	}
	m := load(t, `{"name": "r", "limit_keys": [], "algorithm": "cost_based", "algorithm_config": {"budget": 7, "period": "1d", "cost_key": "header:x-cost"}}`)
	if matches, _ := m.Match(nil, policy.Map{"header:x-cost": "3"}, 0, 0); matches[0].Cost != 3*bucket.Token {
		t.Errorf("cost %v, want that of cost_key", matches[0].Cost)
	}
}
