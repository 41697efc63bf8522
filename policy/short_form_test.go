// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/diff"
)

// A rule in the short form, and an override, mean the same as with algorithm_config, and match the JSON Schema.
func TestShortForm(t *testing.T) {
	for _, fields := range []string{
		`"rate": "100/1m", "burst": 20`,
		`"rate": "100/1m"`,
		`"rps": 10, "burst": "30s", "shards": 4`,
		`"rate": "5/10s", "refill": "interval", "anchor": "key"`,
		`"rate": "100/1m", "burst": 90, "cost_source": "header:x-cost", "default_cost": 2, "min_cost": 1, "max_cost": 9`,
		`"rate": "100/1m", "burst": 90, "fixed_cost": 2.5, "staged_actions": [{"threshold": 80, "action": "warn"}]`,
		`"algorithm": "fixed_window", "tokens": 5, "window": "1m", "capacity": 9`,
		`"algorithm": "sliding_window", "tokens": 5, "window": "1m"`,
		`"algorithm": "sliding_log", "tokens": 5, "window": "1m"`,
		`"algorithm": "leaky_bucket", "rps": 5, "queue": "2s"`,
		`"algorithm": "cost_based", "budget": 1000, "period": "1d", "leased": true`,
	} {
		var algorithm string
		config := fields
		if strings.HasPrefix(fields, `"algorithm"`) {
			algorithm, config, _ = strings.Cut(fields, ", ")
			algorithm += ", "
		}
		file := func(limit string) string {
			return `{"rules": [{"name": "r", "limit_keys": ["query:k"], ` + limit + `}], "fallback_limit": {` + limit + `},
				"overrides": [{"id": "o", "action": "limit", "rules": ["fallback"], ` + strings.ReplaceAll(strings.ReplaceAll(limit, `, "shards": 4`, ""), `, "leased": true`, "") + `,
				"reason": "r", "author": "a", "expires_at": "2999-01-01T00:00:00Z"}]}`
		}
		short := loadText(t, file(fields))
		long := loadText(t, file(algorithm+`"algorithm_config": {`+config+`}`))
		if changes := diff.Compare(long, short, time.Now()); len(changes) > 0 {
			t.Errorf("%s: differs from the long form: %+v", fields, changes)
		}
	}
}

func TestShortForm_Burst(t *testing.T) {
	for rate, want := range map[string]string{`"rate": "100/1m"`: "100", `"rps": 10`: "10", `"tokens_per_second": 2.5`: "2.5", `"rate": "5/10s", "refill": "interval"`: "5"} {
		m := loadText(t, `{`+rate+`}`)
		if got := m.Rules()[0].Limits[0].Bucket.Capacity().String(); got != want || m.Rules()[0].Name != "default" {
			t.Errorf("%s: a burst of %s in rule %s, want %s", rate, got, m.Rules()[0].Name, want)
		}
	}
}

func TestShortForm_Override(t *testing.T) {
	const rest = `"id": "o", "action": "limit", "rules": ["r"], "match": {}, "reason": "r", "author": "a", "expires_at": "2999-01-01T00:00:00Z"`
	m := loadText(t, `{"rules": [{"name": "r", "limit_keys": ["query:k"], "rate": "1/1m"}]}`)
	o, err := policy.ParseOverride([]byte(`{"rate": "7/1m", "burst": 8, ` + rest + `}`))
	if err != nil || string(o.Config) != `{"rate":"7/1m","burst":8}` {
		t.Fatalf("parsed as %s, %v", o.Config, err)
	}
	if m, err = m.WithOverrides([]policy.Override{o}, time.Now()); err != nil {
		t.Fatal(err)
	}
	matches, _ := m.Match(nil, policy.Map{"query:k": "x"}, 0, 1)
	if len(matches) != 1 || matches[0].Limit.Bucket.Capacity().String() != "8" {
		t.Errorf("matches %+v, want one with a burst of 8", matches)
	}
	_, err = policy.ParseOverride([]byte(`{"rate": "7/1m", "algorithm_config": {"rate": "7/1m"}, ` + rest + `}`))
	if err == nil || !strings.Contains(err.Error(), "/rate: rate must not stand beside algorithm_config; it belongs in algorithm_config") {
		t.Errorf("both forms: %v", err)
	}
}
