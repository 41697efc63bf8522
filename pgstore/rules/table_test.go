// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
)

// source has the example rows of the documentation.
func (d *database) source() {
	d.t.Helper()
	d.must(`INSERT INTO {schema}.rate_limit_rule (key_pattern, scope, rate_per_second, burst_capacity, plan) VALUES
		('user:{user_id}', 'user', 10, 50, 'free'),
		('user:{user_id}', 'user', 100, 500, 'pro'),
		('endpoint:/api/search', 'endpoint', 1000, 2000, NULL),
		('global', 'global', 50000, 100000, NULL)`)
}

func TestTable_RowsOfTheSource(t *testing.T) {
	d := newDatabase(t)
	d.source()
	m := d.load()
	for _, tt := range []struct {
		request policy.Map
		want    string
	}{
		// All tiers apply: the plan's, and the tier without a plan.
		{policy.Map{"jwt:sub": "42", "jwt:plan": "free", "path": "/api/search"}, "user-free:sub=42 endpoint%3A/api/search: global:"},
		{policy.Map{"jwt:sub": "42", "jwt:plan": "pro", "path": "/api/search"}, "user-pro:sub=42 endpoint%3A/api/search: global:"},
		// A pattern with a path matches only that path.
		{policy.Map{"jwt:sub": "42", "jwt:plan": "pro", "path": "/api/other"}, "user-pro:sub=42 global:"},
		{policy.Map{"jwt:plan": "free", "path": "/"}, "global:"}, // no user
		{policy.Map{"jwt:sub": "42", "jwt:plan": "trial"}, "global:"},
	} {
		if got := falls(m, tt.request); got != tt.want {
			t.Errorf("%v falls under %q, want %q", tt.request, got, tt.want)
		}
	}
	if got := m.Version(); got != 2 {
		t.Errorf("version %d after one statement, want 2", got)
	}
	for _, r := range d.rows().Rules {
		if r.Version != 1 || r.UpdatedAt.IsZero() || r.CreatedAt.IsZero() || !r.Active {
			t.Errorf("row %+v: want version 1, active, with its times", r)
		}
	}
}

// TestTable_InactiveRulesDoNotApply proves that inactive rules never apply, for any plan.
func TestTable_InactiveRulesDoNotApply(t *testing.T) {
	d := newDatabase(t)
	d.source()
	d.must(`UPDATE {schema}.rate_limit_rule SET is_active = false WHERE plan = 'free' OR key_pattern LIKE 'endpoint:%'`)
	m := d.load()
	request := policy.Map{"jwt:sub": "42", "jwt:plan": "free", "path": "/api/search"}
	if got := falls(m, request); got != "global:" {
		t.Errorf("falls under %q, want global alone", got)
	}
	for _, r := range d.rows().Rules {
		if changed := r.Name == "user-free" || r.Scope == "endpoint"; (r.Version == 2) != changed || r.UpdatedAt.After(r.CreatedAt) != changed {
			t.Errorf("rule %s has version %d and was updated at %v, created at %v", r.Name, r.Version, r.UpdatedAt, r.CreatedAt)
		}
	}
}

func TestTable_PatternsAreMatched(t *testing.T) {
	d := newDatabase(t)
	d.must(`INSERT INTO {schema}.rate_limit_attribute VALUES ('device', 'header:x-device')`)
	d.must(`UPDATE {schema}.rate_limit_attribute SET attribute = 'header:x-tenant' WHERE name = 'tenant'`)
	request := policy.Map{"ip:address": "2001:db8::5", "path": "/api/items/7", "jwt:sub": "42", "header:x-tenant": "acme", "header:x-device": "d",
		"header:x-region": "eu", "method": "POST", "shelf": "s", "cookie:c": ""}
	for _, tt := range []struct{ pattern, scope, want string }{
		{"global", "global", "r:"},
		{"ip:{ip}", "ip", "r:ip=2001:db8::/64"},
		{"ip:{ip:address/48}", "ip", "r:ip=2001:db8::/48"},
		{"ip:{header:x-region}", "ip", "r:x-region=eu"}, // labels are comments
		{"endpoint:{path}", "endpoint", "r:path=/api/items/7"},
		{"endpoint:/api/*", "endpoint", "r:"},
		{"endpoint:/api", "endpoint", ""},
		{"endpoint:/api/*:user:{user_id}", "user", "r:sub=42"},
		{"method:post:{device}", "custom", "r:x-device=d"},
		{"user:42", "user", "r:"},
		{"user:43", "user", ""},
		{"tenant:{tenant}:user:{user_id}", "custom", "r:x-tenant=acme|sub=42"},
		{"{tenant}:{user_id}", "custom", "r:x-tenant=acme|sub=42"},
		{"tenant:acme:ip:{ip}", "ip", "r:ip=2001:db8::/64"},
		{"{attribute:shelf}", "custom", "r:shelf=s"},
		{"{query:absent}", "custom", ""},
		{"api_key:{api_key}", "custom", ""},
	} {
		d.must(`TRUNCATE {schema}.rate_limit_rule`)
		d.must(`INSERT INTO {schema}.rate_limit_rule (name, key_pattern, scope, rate_per_second, burst_capacity) VALUES ('r', $1, $2, 1, 1)`, tt.pattern, tt.scope)
		if got := falls(d.load(), request); got != tt.want {
			t.Errorf("pattern %s: falls under %q, want %q", tt.pattern, got, tt.want)
		}
	}
}

// TestTable_Checks proves that each invalid row is rejected by the expected constraint, and that every constraint
// has a message.
func TestTable_Checks(t *testing.T) {
	d := newDatabase(t)
	d.source()
	const most = "key_pattern, scope, rate_per_second, burst_capacity, "
	seen := map[string]bool{}
	for _, tt := range []struct{ constraint, columns, values string }{
		{"rate_per_second_check", most + "name", "'ip:{ip}', 'ip', 0, 1, 'x'"},
		{"rate_per_second_check", most + "name", "'ip:{ip}', 'ip', -1, 1, 'x'"},
		{"rate_per_second_check", most + "name", "'ip:{ip}', 'ip', 'NaN', 1, 'x'"},
		{"rate_per_second_check", most + "name", "'ip:{ip}', 'ip', 'Infinity', 1, 'x'"},
		{"rate_per_second_check", most + "name", "'ip:{ip}', 'ip', 1e13, 1, 'x'"},
		{"burst_capacity_check", most + "name", "'ip:{ip}', 'ip', 1, -5, 'x'"},
		{"burst_capacity_check", most + "name", "'ip:{ip}', 'ip', 1, 0, 'x'"},
		{"burst_capacity_check", most + "name", "'ip:{ip}', 'ip', 1, 0.999, 'x'"},
		{"burst_capacity_check", most + "name", "'ip:{ip}', 'ip', 1, 1.0001, 'x'"},
		{"burst_capacity_check", most + "name", "'ip:{ip}', 'ip', 1, 'NaN', 'x'"},
		{"burst_capacity_check", most + "name", "'ip:{ip}', 'ip', 1, 'Infinity', 'x'"},
		{"key_pattern_plan_key", most + "name", "'global', 'global', 1, 1, 'x'"}, // no plan, twice
		{"key_pattern_plan_key", most + "name, plan", "'user:{user_id}', 'user', 1, 1, 'x', 'pro'"},
		{"name_key", most + "plan", "'user:{user_id}', 'user', 1, 1, 'pro'"},
		{"name_key", most + "name", "'ip:{ip}', 'ip', 1, 1, 'global'"},
		{"name_check", most + "name", "'ip:{ip}', 'ip', 1, 1, ''"},
		{"name_check", most + "name", "'ip:{ip}', 'ip', 1, 1, ' x'"},
		{"name_check", most + "name", "'ip:{ip}', 'ip', 1, 1, 'é'"},
		{"name_check", most + "name", "'ip:{ip}', 'ip', 1, 1, repeat('x', 65)"},
		{"key_pattern_check", most + "name", "'', 'custom', 1, 1, 'x'"},
		{"key_pattern_check", most + "name", "'ip', 'custom', 1, 1, 'x'"},
		{"key_pattern_check", most + "name", "'ip:', 'custom', 1, 1, 'x'"},
		{"key_pattern_check", most + "name", "'ip:{ip', 'custom', 1, 1, 'x'"},
		{"key_pattern_check", most + "name", "'ip:{}', 'custom', 1, 1, 'x'"},
		{"key_pattern_check", most + "name", "'{ip}{user}', 'custom', 1, 1, 'x'"},
		{"key_pattern_check", most + "name", "'endpoint:/a b', 'custom', 1, 1, 'x'"},
		{"key_pattern_check", most + "name", "'Endpoint:/a', 'custom', 1, 1, 'x'"},
		{"scope_check", most + "name", "'ip:{ip}', 'user', 1, 1, 'x'"},
		{"scope_check", most + "name", "'ip:{ip}', 'global', 1, 1, 'x'"},
		{"scope_check", most + "name", "'ip:{ip}', 'planet', 1, 1, 'x'"},
		{"plan_check", most + "plan", "'ip:{ip}', 'ip', 1, 1, ''"},
		{"plan_check", most + "plan", "'ip:{ip}', 'ip', 1, 1, 'pro*'"},
		{"plan_check", most + "plan", "'ip:{ip}', 'ip', 1, 1, 'pro '"},
		{"description_check", most + "description", "'ip:{ip}', 'ip', 1, 1, repeat('x', 1025)"},
		{"spec_check", most + "spec", "'ip:{ip}', 'ip', 1, 1, '[]'"},
		{"limit_check", "key_pattern, scope", "'ip:{ip}', 'ip'"},
		{"limit_check", "key_pattern, scope, rate_per_second", "'ip:{ip}', 'ip', 1"},
		{"limit_check", "key_pattern, scope, burst_capacity, spec", `'ip:{ip}', 'ip', 1, '{"limits": []}'`},
		{"limit_check", most + "spec", `'ip:{ip}', 'ip', 1, 1, '{"limits": []}'`},
		{"limit_check", most + "spec", `'ip:{ip}', 'ip', 1, 1, '{"algorithm": "sliding_log"}'`},
		{"limit_check", "spec", `'{"name": "x", "limit_keys": []}'`},
		{"limit_check", "spec", `'{"name": "x", "limit_keys": [], "algorithm_config": {}}'`},
		{"twice_check", most + "spec", `'ip:{ip}', 'ip', 1, 1, '{"algorithm_config": {"rps": 2}}'`},
		{"twice_check", most + "spec", `'ip:{ip}', 'ip', 1, 1, '{"algorithm_config": {"rate": "1/1s"}}'`},
		{"twice_check", most + "spec", `'ip:{ip}', 'ip', 1, 1, '{"limit_keys": []}'`},
		{"twice_check", most + "spec, plan", `'ip:{ip}', 'ip', 1, 1, '{"match": {"jwt:plan": "free"}}', 'pro'`},
		{"twice_check", most + "plan", `'ip:{ip}:plan:free', 'ip', 1, 1, 'pro'`},
		{"twice_check", most + "spec, name", `'ip:{ip}', 'ip', 1, 1, '{"name": "x"}', 'y'`},
		{"keys_check", most + "spec", `'custom', 'custom', 1, 1, '{}'`},
		{"keys_check", "spec", `'{"name": "x", "algorithm_config": {"rps": 1, "burst": 1}}'`},
		{"spec_check", "spec", `'{"name": "x", "limit_keys": [], "algorithm_config": []}'`},
		{"spec_check", "spec", `'{"name": "x", "limit_keys": "ip:address", "algorithm_config": {"rps": 1, "burst": 1}}'`},
		{"policy_check", most + "policy", `'ip:{ip}', 'ip', 1, 1, ''`},
		{"match_check", most + "plan, spec", `'ip:{ip}', 'ip', 1, 1, 'pro', '{"match": [{"method": "GET"}, {"method": "PUT"}]}'`},
		{"key_pattern_plan_key", "spec", `'{"name": "x", "limit_keys": ["jwt:sub"], "match": {"jwt:plan": "pro"}, "algorithm_config": {"rps": 1, "burst": 1}}'`},
		{"fallback_key", most + "name, is_fallback", `'ip:{ip}', 'ip', 1, 1, 'x', true), ('global', 'global', 1, 1, 'y', true`},
	} {
		err := d.insert(tt.columns, tt.values)
		if got := refusedBy(err); got != "rate_limit_rule_"+tt.constraint {
			t.Errorf("INSERT (%s) VALUES (%s): %v, want it refused by %s", tt.columns, tt.values, err, tt.constraint)
		}
		seen["rate_limit_rule_"+tt.constraint] = true
	}
	for _, name := range rules.RefusalNames() {
		if !seen[name] {
			t.Errorf("no row here is refused by %s", name)
		}
	}
	if got := len(d.rows().Rules); got != 4 {
		t.Errorf("%d rows, want the 4 from before", got)
	}
	for _, values := range []string{"'User', 'jwt:sub'", "'path', 'jwt:sub'", "'x', ''"} {
		if err := d.exec("INSERT INTO {schema}.rate_limit_attribute VALUES (" + values + ")"); !strings.HasPrefix(refusedBy(err), "rate_limit_attribute_") {
			t.Errorf("attribute %s: %v, want it refused", values, err)
		}
	}
}

// TestTable_CopiesThatAreNone has rows that may share a pattern and plan, because they differ otherwise or only
// one is active.
func TestTable_CopiesThatAreNone(t *testing.T) {
	d := newDatabase(t)
	d.source()
	const columns = "name, key_pattern, scope, rate_per_second, burst_capacity, spec"
	for i, field := range []string{`"match": {"method": "POST"}`, `"group": "g"`, `"mode": "shadow"`, `"on_missing": "empty"`} {
		if err := d.insert(columns, "'n"+string(rune('0'+i))+"', 'global', 'global', 1, 1, '{"+field+"}'"); err != nil {
			t.Errorf("another global rule with %s: %v", field, err)
		}
	}
	if err := d.insert("name, key_pattern, scope, rate_per_second, burst_capacity, policy", "'other', 'global', 'global', 1, 1, 'other'"); err != nil {
		t.Errorf("another global rule, of another policy: %v", err)
	}
	if err := d.insert("name, key_pattern, scope, rate_per_second, burst_capacity, is_active", "'off', 'global', 'global', 1, 1, false"); err != nil {
		t.Errorf("another global rule, not active: %v", err)
	}
	if err := d.exec(`UPDATE {schema}.rate_limit_rule SET is_active = true WHERE name = 'off'`); refusedBy(err) != "rate_limit_rule_key_pattern_plan_key" {
		t.Errorf("a second global rule made active: %v, want it refused", err)
	}
}

func TestTable_DefaultNames(t *testing.T) {
	d := newDatabase(t)
	long := "endpoint:/" + strings.Repeat("a", 100)
	var got []string
	for _, r := range []struct{ pattern, plan string }{
		{"global", ""}, {"ip:{ip}", ""}, {"user:{user_id}", "free plan"}, {"user:{header:x-user}", ""}, {"endpoint:/api:ip:{ip:address/48}", "größe"},
		{"{tenant}:{user_id}", ""}, {long, ""}, {long + "b", ""},
	} {
		d.must(`INSERT INTO {schema}.rate_limit_rule (key_pattern, scope, rate_per_second, burst_capacity, plan)
			VALUES ($1::text, CASE WHEN $1::text = 'global' THEN 'global' ELSE 'custom' END, 1, 1, nullif($2::text, ''))`, r.pattern, r.plan)
	}
	for _, r := range d.rows().Rules {
		got = append(got, r.Name)
	}
	want := []string{"global", "ip", "user-free_plan", "user:header:x-user", "endpoint:/api:ip-gr__e", "tenant:user_id"}
	if !slices.Equal(got[:6], want) {
		t.Errorf("names are %q, want %q", got[:6], want)
	}
	if len(got[6]) != 64 || len(got[7]) != 64 || got[6] == got[7] {
		t.Errorf("names of long patterns are %q, want two of 64 letters", got[6:])
	}
	d.load()
}
