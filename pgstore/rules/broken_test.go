// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// TestLoad_NamesBrokenRows has rows that pass the constraints but do not compile. One error names each of them
// with its column.
func TestLoad_NamesBrokenRows(t *testing.T) {
	d := newDatabase(t)
	d.source()
	d.must(`INSERT INTO {schema}.rate_limit_attribute VALUES ('odd', 'headr:x')`)
	d.must(`INSERT INTO {schema}.rate_limit_policy VALUES ('rules', '{"headers": "x-ray"}')`)
	d.must(`INSERT INTO {schema}.rate_limit_rule (name, key_pattern, scope, rate_per_second, burst_capacity, plan, spec) VALUES
		('odd', '{odd}', 'custom', 1, 1, NULL, '{}'),
		('custom word', '{attribute:geo:x}', 'custom', 1, 1, NULL, '{}'),
		('path', 'endpoint:api', 'endpoint', 1, 1, NULL, '{}'),
		('twice', '{ip}:{ip}', 'custom', 1, 1, NULL, '{}'),
		('fields', 'ip:{ip}', 'ip', 1, 1, NULL, '{"algorithm_config": {"shards": 99}, "mode": "shadwo", "wat": 1}'),
		('cost', 'ip:{ip}', 'ip', 1, 2, NULL, '{"group": "g", "algorithm_config": {"fixed_cost": 3}}'),
		('slow', 'ip:{ip}', 'ip', 1e-30, 2, NULL, '{"group": "h"}'),
		('template', 'ip:{ip}', 'ip', 1, 2, NULL, '{"group": "i", "match": {"path": "/users/{id"}}'),
		('colon', 'ip:{ip}', 'ip', 1, 2, NULL, '{"group": "j", "match": {"path": "/users/:id"}}'),
		('bots', 'ip:{ip}', 'ip', 1, 2, NULL, '{"group": "k", "match": {"ua:bot_category": "ai"}}')`)
	_, revision, err := d.Load(t.Context(), options)
	found, ok := errors.AsType[rules.Errors](err)
	if !ok || revision == 0 {
		t.Fatalf("Load: revision %d, %v; want an Errors at a revision", revision, err)
	}
	for _, want := range []string{
		`policy "rules": spec/headers: `,
		`rule 5 "odd": spec/limit_keys/0: unknown attribute (got "headr:x"); did you mean "header:x"?`,
		`rule 6 "custom word": spec/limit_keys/0: mete has no location attributes`,
		`rule 7 "path": spec/match/path: a path must start with a slash (got "api")`,
		`rule 8 "twice": spec/limit_keys/1: the attribute is in limit_keys already`,
		`rule 9 "fields": spec/algorithm_config/shards: shards must be a whole number between 2 and 32 (got 99)`,
		`rule 9 "fields": spec/mode: mode must be enforce, shadow, off, or a share of the keys such as 25% (got "shadwo"); did you mean "shadow"?`,
		`rule 9 "fields": spec/wat: unknown field "wat" in a rule`,
		`rule 10 "cost": spec/algorithm_config/fixed_cost: fixed_cost is above the burst of 2`,
		`rule 11 "slow": spec/algorithm_config/rps: rps`,
		`rule 12 "template": spec/match/path: the braces in the segment "{id" are not balanced`,
		`rule 13 "colon": spec/match/path: the placeholders of a path are written in braces`,
		`rule 14 "bots": spec/match/ua:bot_category: "ua:bot_category": the only attribute of the user agent is ua:bot`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no mistake begins with %s", want)
		}
	}
	if len(found) != 13 || t.Failed() {
		t.Errorf("%d mistakes, want 13:\n%v", len(found), err)
	}
	for _, m := range found {
		if strings.Contains(m.Error(), "\n") || m.Reason == "" || m.Name+m.Policy == "" {
			t.Errorf("mistake %+v: want one line, with a row", m)
		}
	}
}

// TestLoad_NoRules proves that a table without active rules is an error, so that deleting rows does not lift all
// limits.
func TestLoad_NoRules(t *testing.T) {
	d := newDatabase(t)
	for _, sql := range []string{``, `UPDATE {schema}.rate_limit_rule SET is_active = false`} {
		if sql != "" {
			d.source()
			d.must(sql)
		}
		_, _, err := d.Load(t.Context(), options)
		if _, ok := errors.AsType[rules.Errors](err); !ok || !strings.Contains(err.Error(), "no active rule") {
			t.Errorf("Load after %q: %v, want that no active rule", sql, err)
		}
	}
}

func TestLoad_Bounds(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	const insert = `INSERT INTO {schema}.rate_limit_rule (name, key_pattern, scope, rate_per_second, burst_capacity)
		SELECT 'r' || i, 'endpoint:/api/' || i, 'endpoint', 1, 1 FROM generate_series($1::int, $2::int) i`
	d.must(insert, 1, policy.MaxRules)
	if got := len(d.load().Rules()); got != policy.MaxRules {
		t.Errorf("%d rules for as many endpoints, want %d", got, policy.MaxRules)
	}
	d.must(insert, policy.MaxRules+1, policy.MaxRules+1)
	if _, _, err := d.Load(t.Context(), options); err == nil || !strings.Contains(err.Error(), "10001 rules are active, the maximum is 10000") {
		t.Errorf("Load of one more: %v", err)
	}
	d.must(`UPDATE {schema}.rate_limit_rule SET is_active = false WHERE name > 'r5'`)
	d.load()
	d.must(`UPDATE {schema}.rate_limit_rule SET description = repeat('x', 1000), is_active = name < 'r5',
		spec = spec || jsonb_build_object('group', name, 'match', jsonb_build_object('method', ARRAY(SELECT repeat('y', 1000) || i FROM generate_series(1, 3) i)))`)
	if _, _, err := d.Load(t.Context(), options); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("Load of more than a policy file can have: %v", err)
	}
}

// TestLoad_CountsRulesThatMatchTogether counts rules that can match the same request. Rules of different plans or
// paths count once.
func TestLoad_CountsRulesThatMatchTogether(t *testing.T) {
	d := newDatabase(t)
	d.must(`INSERT INTO {schema}.rate_limit_rule (key_pattern, rate_per_second, burst_capacity, plan)
		SELECT pattern, 1, 1, plan FROM (SELECT 'user:{user_id}' AS pattern, 'plan' || i AS plan FROM generate_series(1, 200) i
		UNION ALL SELECT 'endpoint:/' || i || '/*:{ip}', NULL FROM generate_series(1, 200) i) rows`)
	if got, want := falls(d.load(), policy.Map{"jwt:sub": "7", "jwt:plan": "plan9", "path": "/9/x", "ip:address": "192.0.2.1"}),
		"user-plan9:sub=7 endpoint%3A/9/*%3Aip:ip=192.0.2.1"; got != want {
		t.Errorf("a request falls under %q, want %q", got, want)
	}
	d.must(`INSERT INTO {schema}.rate_limit_rule (key_pattern, rate_per_second, burst_capacity)
		SELECT '{header:x-' || i || '}', 1, 1 FROM generate_series(1, 63) i`)
	if _, _, err := d.Load(t.Context(), options); err == nil || !strings.Contains(err.Error(), "more than 64 limits could apply to one request") {
		t.Errorf("Load of 65 rules that match together: %v", err)
	}
}

func TestOpen_Fails(t *testing.T) {
	at := proctest.PostgresURL(t)
	for _, tt := range []struct {
		url     string
		config  rules.Config
		want    string
		nothing bool
	}{
		{"mysql://x", rules.Config{}, "must begin with postgres://", false},
		{"postgres://u:secret@h/d?sslmode=perhaps", rules.Config{}, "sslmode", false},
		{at, rules.Config{Schema: "pg_x"}, "pg_", false},
		{at, rules.Config{Poll: -1}, "poll", false},
		{"postgres://u:secret@" + proctest.FreeAddr(t) + "/d", rules.Config{}, "", true},
	} {
		s, err := rules.Open(t.Context(), tt.url, tt.config)
		if err == nil {
			s.Close()
			t.Errorf("Open(%q): no error", tt.url)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") || errors.Is(err, store.ErrUnavailable) != tt.nothing {
			t.Errorf("Open(%q): %v, want %q, no password, unavailable %t", tt.url, err, tt.want, tt.nothing)
		}
	}
}

func TestOpen_ReadOnlyMakesNothing(t *testing.T) {
	s, err := rules.Open(t.Context(), proctest.PostgresURL(t), rules.Config{Schema: proctest.PostgresSchema(t), ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, _, err := s.Load(t.Context(), options); err == nil || !strings.Contains(err.Error(), "has no rules: mete rules list") {
		t.Errorf("Load: %v, want what to do", err)
	}
}

// TestOpen_TablesOfAnEarlierDevelopmentVersion proves that the error for old tables names the version, and that
// its script drops them.
func TestOpen_TablesOfAnEarlierDevelopmentVersion(t *testing.T) {
	d := newDatabase(t)
	d.must(`DROP TABLE {schema}.rate_limit_rule, {schema}.rate_limit_attribute, {schema}.rate_limit_revision, {schema}.rate_limit_policy;
		DROP FUNCTION {schema}.rate_limit_pattern, {schema}.rate_limit_pattern_of, {schema}.rate_limit_pattern_parts,
			{schema}.rate_limit_attribute_row;
		CREATE TABLE {schema}.rate_limit_attribute (name text PRIMARY KEY, attribute text NOT NULL);
		CREATE TABLE {schema}.rate_limit_rule (rule_id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, name text NOT NULL,
			key_pattern varchar(128) NOT NULL, is_active boolean NOT NULL DEFAULT true, spec jsonb NOT NULL DEFAULT '{}');
		CREATE TABLE {schema}.rate_limit_revision (only_row boolean PRIMARY KEY DEFAULT true, revision bigint NOT NULL);
		INSERT INTO {schema}.rate_limit_revision (revision) VALUES (1);
		CREATE TRIGGER rate_limit_rule_row BEFORE INSERT OR UPDATE ON {schema}.rate_limit_rule
			FOR EACH ROW EXECUTE FUNCTION {schema}.rate_limit_rule_row();
		CREATE TRIGGER rate_limit_rule_changed AFTER INSERT ON {schema}.rate_limit_rule
			FOR EACH STATEMENT EXECUTE FUNCTION {schema}.rate_limit_changed();
		CREATE TRIGGER rate_limit_attribute_changed AFTER INSERT ON {schema}.rate_limit_attribute
			FOR EACH STATEMENT EXECUTE FUNCTION {schema}.rate_limit_changed()`)
	d = openDatabase(t, d.url, d.schema, rules.Config{})
	_, _, loading := d.Load(t.Context(), options)
	_, reading := d.Read(t.Context())
	_, editing := d.Edit(t.Context(), false, func(*rules.Set) error { return nil })
	for what, err := range map[string]error{"Load": loading, "Read": reading, "Edit": editing} {
		if err == nil || !strings.Contains(err.Error(), "earlier development version") || !strings.Contains(err.Error(), "mete rules export") {
			t.Errorf("%s: %v, want an error about an earlier development version", what, err)
		}
	}
	if t.Failed() {
		return
	}
	_, script, _ := strings.Cut(loading.Error(), "then run ")
	script, _, _ = strings.Cut(script, " and import")
	d.must(script)
	d = openDatabase(t, d.url, d.schema, rules.Config{})
	d.source()
	d.load()
}
