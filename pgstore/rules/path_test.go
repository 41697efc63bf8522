// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore/internal/impostors"
	"github.com/metehq/mete/pgstore/rules"
)

// TestSearchPath puts a schema with copies of PostgreSQL's functions, operators and types before pg_catalog. No
// statement of the package, and no trigger or constraint of its tables, calls a copy.
func TestSearchPath(t *testing.T) {
	p := proctest.StartPostgres(t)
	impostors.Install(t, p.Psql)
	f := follow(t, p.URL(), "mete", rules.Config{})
	rule := rules.Rule{KeyPattern: "user:{user_id}", RatePerSecond: "1", BurstCapacity: "5", Active: true}
	for _, step := range []struct {
		name, want string
		edit       func(*rules.Set) error
	}{
		{"add", "+ip +user-free", func(s *rules.Set) error {
			free := rule
			free.Plan, free.Description = "free", "a rule of the test"
			s.Rules = append(s.Rules, rules.Rule{KeyPattern: "ip:{ip}", RatePerSecond: "2", BurstCapacity: "5"}, free)
			return nil
		}},
		{"change", "~ip ~user-free", func(s *rules.Set) error {
			s.Rules[0].Active, s.Rules[0].Priority, s.Rules[1].Description = true, -1, ""
			return nil
		}},
		{"remove", "-ip", func(s *rules.Set) error {
			s.Rules = s.Rules[1:]
			return nil
		}},
	} {
		for _, dryRun := range []bool{true, false} {
			changes, err := f.Edit(t.Context(), dryRun, step.edit)
			if err != nil || summary(changes) != step.want {
				t.Errorf("%s, dry run %v: %s, %v; want %s", step.name, dryRun, summary(changes), err, step.want)
			}
		}
	}
	if m, revision, err := f.Load(t.Context(), options); err != nil || m == nil || revision != 6 { // one per row
		t.Errorf("load: revision %d, %v; want 6", revision, err)
	}
	if set, err := f.Read(t.Context()); err != nil || len(set.Rules) != 1 || set.Policies == nil {
		t.Errorf("read: %+v, %v; want one rule", set, err)
	}
	for _, sql := range []string{ // the triggers and constraints
		"INSERT INTO mete.rate_limit_rule (key_pattern, scope, rate_per_second, burst_capacity, plan) VALUES ('endpoint:/a', 'endpoint', 1, 1, 'free')",
		"INSERT INTO mete.rate_limit_attribute (name, attribute) VALUES ('team', 'jwt:team')",
		"UPDATE mete.rate_limit_rule SET description = 'x'",
		"INSERT INTO mete.rate_limit_attribute VALUES ('plan', 'jwt:p') ON CONFLICT (name) DO UPDATE SET attribute = excluded.attribute",
		"INSERT INTO mete.rate_limit_rule (spec) VALUES ('{\"name\": \"doc\", \"limit_keys\": [\"shelf\"], \"match\": {\"path\": \"/b\"}, \"algorithm_config\": {\"rps\": 2, \"burst\": 5}}')",
		"INSERT INTO mete.rate_limit_policy VALUES ('rules', '{\"mode\": \"shadow\"}')",
		"DELETE FROM mete.rate_limit_rule",
	} {
		if text, err := p.Psql(sql); err != nil {
			t.Errorf("%s: %s, %v", sql, text, err)
		}
	}
	if t.Failed() {
		return
	}
	for f.next().revision < 10 {
	}
	if strings.Contains(f.log.String(), "impostor") {
		t.Errorf("log:\n%s", f.log)
	}
}
