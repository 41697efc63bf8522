// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// A rule gives its penalty to its limits. A limit of its own, and an override, may have another one.
func TestPenalty(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [
		{"name": "fixed", "limit_keys": ["ip:address"], "penalty": "10m", "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "grows", "limit_keys": ["query:a"], "penalty": {"first": "1m", "factor": 2.5, "most": "1h"}, "limits": [
			{"rps": 1, "burst": 1},
			{"algorithm": "sliding_log", "tokens": 5, "window": "1h", "penalty": "1d"},
			{"algorithm": "leaky_bucket", "algorithm_config": {"rps": 1, "queue": 1, "penalty": "2h"}}]},
		{"name": "none", "limit_keys": ["query:b"], "algorithm_config": {"rps": 1, "burst": 1}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := func(p *bucket.Penalty) string {
		if p == nil {
			return "none"
		}
		return strings.Join([]string{p.First().String(), p.Factor().String(), p.Most().String()}, " ")
	}
	var got []string
	for _, r := range m.Rules() {
		for i := range r.Limits {
			got = append(got, text(r.Limits[i].Penalty))
		}
	}
	want := []string{"10m0s 1 10m0s", "1m0s 2.5 1h0m0s", "24h0m0s 1 24h0m0s", "2h0m0s 1 2h0m0s", "none"}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("penalties %q, want %q", got, want)
	}
	facts := m.Rules()[1].Limits[0].Facts()
	if len(facts) == 0 || facts[0].Field != "penalty" || !facts[0].Notable ||
		facts[0].Value != "a denied key is admitted again after 1m, then each time after 2.5 times as long, up to 1h; it starts over after 1h without a new penalty" {
		t.Errorf("facts %+v", facts)
	}
}

// An override with a limit keeps the penalty of its rule, or replaces it.
func TestPenalty_Override(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [{"name": "r", "limit_keys": ["header:x-api-key"], "penalty": "10m", "algorithm_config": {"rps": 1, "burst": 1}}],
		"overrides": [
			{"id": "kept", "action": "limit", "rules": ["r"], "match": {"header:x-api-key": "k1"}, "algorithm_config": {"rps": 5, "burst": 5},
			 "reason": "r", "author": "a", "expires_at": "2026-02-01T00:00:00Z"},
			{"id": "own", "action": "limit", "rules": ["r"], "match": {"header:x-api-key": "k2"}, "algorithm_config": {"rps": 5, "burst": 5, "penalty": "1h"},
			 "reason": "r", "author": "a", "expires_at": "2026-02-01T00:00:00Z"}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]time.Duration{"k1": 10 * time.Minute, "k2": time.Hour, "k3": 10 * time.Minute} {
		var found policy.MatchResult
		m.Find(&found, policy.Map{"header:x-api-key": key}, 0, bucket.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		if len(found.Matches) != 1 || found.Matches[0].Limit.Penalty == nil || found.Matches[0].Limit.Penalty.First() != want {
			t.Errorf("%s: %+v, want a penalty of %v", key, found.Matches, want)
		}
	}
}
