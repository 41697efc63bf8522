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

func loadActive(t *testing.T, active string) *policy.Matcher {
	t.Helper()
	m, err := policy.Load(fmt.Appendf(nil, `{"rules": [{"name": "r", "limit_keys": [], "active": %s, "algorithm_config": {"rps": 1, "burst": 1}}]}`, active), policy.Options{})
	if err != nil {
		t.Fatalf("%s: %v", active, err)
	}
	return m
}

func TestActive(t *testing.T) {
	for _, tt := range []struct {
		active string
		fact   string
		at     map[string]bool // whether the rule applies
	}{
		{`{"days": ["mon", "tue", "wed", "thu", "fri"], "hours": "09:00-17:00", "timezone": "Europe/Berlin"}`,
			"Mon Tue Wed Thu Fri 09:00-17:00 Europe/Berlin", map[string]bool{
				"2026-11-27T08:00:00Z":        true, // Friday, 9:00
				"2026-11-27T07:59:59.999999Z": false,
				"2026-11-27T15:59:59.999999Z": true,
				"2026-11-27T16:00:00Z":        false,
				"2026-11-28T12:00:00Z":        false, // Saturday
				"2026-07-01T07:00:00Z":        true,  // summer time
				"2026-07-01T15:00:00Z":        false,
			}},
		{`{"days": ["Saturday"], "hours": "22:00-06:00", "timezone": "UTC"}`, "Sat 22:00-06:00 UTC", map[string]bool{
			"2026-11-28T22:00:00Z": true,
			"2026-11-28T21:59:59Z": false,
			"2026-11-29T05:59:59Z": true, // Sunday morning belongs to Saturday
			"2026-11-29T06:00:00Z": false,
			"2026-11-28T03:00:00Z": false, // Saturday morning belongs to Friday
			"2026-11-29T23:00:00Z": false,
		}},
		{`{"hours": ["00:00-01:30", "12:00-24:00"], "timezone": "Asia/Kathmandu"}`, "00:00-01:30 12:00-24:00 Asia/Kathmandu", map[string]bool{
			"2026-11-28T18:15:00Z": true, // midnight
			"2026-11-28T19:44:59Z": true,
			"2026-11-28T19:45:00Z": false,
			"2026-11-28T06:15:00Z": true,
			"2026-11-28T06:14:59Z": false,
		}},
		{`{"days": ["sun"], "timezone": "America/New_York"}`, "Sun America/New_York", map[string]bool{
			"2026-11-29T05:00:00Z": true,
			"2026-11-29T04:59:59Z": false,
			"2026-11-30T04:59:59Z": true,
			"2026-11-30T05:00:00Z": false,
		}},
	} {
		m := loadActive(t, tt.active)
		if !m.DependsOnTime() {
			t.Errorf("%s: the matcher does not depend on the time", tt.active)
		}
		for text, want := range tt.at {
			at, err := time.Parse(time.RFC3339Nano, text)
			if err != nil {
				t.Fatal(err)
			}
			matches, _ := m.Match(nil, nil, 0, bucket.At(at))
			if got := len(matches) == 1; got != want {
				t.Errorf("%s at %s: applies %v, want %v", tt.active, text, got, want)
			}
			e := m.Explain(nil, 0, bucket.At(at))
			if got := e.Rules[0].Outcome; got != policy.OutcomeInactive && !want || got != policy.OutcomeApplies && want {
				t.Errorf("%s at %s: outcome %v", tt.active, text, got)
			}
		}
		facts := m.Rules()[0].Facts()
		found := false
		for _, f := range facts {
			found = found || f.Field == "active" && f.Value == tt.fact && f.Notable
		}
		if !found {
			t.Errorf("%s: facts %+v, want %q", tt.active, facts, tt.fact)
		}
	}
}

// A tier that applies only at times hides no later tier.
func TestActive_HidesNoTier(t *testing.T) {
	const rules = `{"rules": [
		{"name": "day", "limit_keys": ["ip:address"], %s"algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "night", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 10, "burst": 10}}]}`
	if _, err := policy.Load(fmt.Appendf(nil, rules, ""), policy.Options{}); err == nil || !strings.Contains(err.Error(), "never match") && !strings.Contains(err.Error(), "/rules/1") {
		t.Errorf("without active: %v, want an error about the second rule", err)
	}
	m, err := policy.Load(fmt.Appendf(nil, rules, `"active": {"hours": "08:00-20:00", "timezone": "UTC"}, `), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for hour, want := range map[int]string{7: "night", 8: "day", 19: "day", 20: "night"} {
		at := bucket.At(time.Date(2026, 11, 28, hour, 0, 0, 0, time.UTC))
		matches, _ := m.Match(nil, policy.Map{"ip:address": "192.0.2.1"}, 0, at)
		if len(matches) != 1 || matches[0].Rule.Name != want {
			t.Errorf("at %d:00: %+v, want %s", hour, matches, want)
		}
	}
}

func TestActive_WithoutZone(t *testing.T) {
	if w := loadActive(t, `{"hours": "08:00-20:00"}`).Warnings(); len(w) != 1 || w[0].Code != "calendar-zone" {
		t.Errorf("warnings %+v, want calendar-zone", w)
	}
}
