// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// columnsOf returns the columns of the rule r, and its spec.
func (d *database) columnsOf(name string) string {
	d.t.Helper()
	return strings.Join(d.query(fmt.Sprintf(`SELECT concat_ws(' ', key_pattern, scope, coalesce(rate_per_second::text, '-') || '/' || coalesce(burst_capacity::text, '-'),
		coalesce(plan, '-'), coalesce(window_tokens::text, '-') || '/' || coalesce(window_length, '-'), 'v' || version, spec) FROM {schema}.rate_limit_rule WHERE name = '%s'`, name)), "\n")
}

// A statement may set columns or spec: each follows the other.
func TestTable_ColumnsAndSpecAgree(t *testing.T) {
	d := newDatabase(t)
	d.must(`INSERT INTO {schema}.rate_limit_rule (name, key_pattern, rate_per_second, burst_capacity, plan, description)
		VALUES ('r', 'endpoint:/a:user:{user_id}', 10.50, 20, 'free', 'text')`)
	for _, tt := range []struct{ set, want string }{
		{`priority = priority`, `endpoint:/a:user:{user_id} custom 10.50/20 free -/- v1 {"name": "r", "match": {"path": "/a", "jwt:plan": "free"}, ` +
			`"limit_keys": ["jwt:sub"], "description": "text", "algorithm_config": {"rps": 10.50, "burst": 20}}`},
		// Columns change spec.
		{`rate_per_second = 10.5, description = NULL`, `endpoint:/a:user:{user_id} custom 10.50/20 free -/- v2 {"name": "r", "match": {"path": "/a", "jwt:plan": "free"}, ` +
			`"limit_keys": ["jwt:sub"], "algorithm_config": {"rps": 10.50, "burst": 20}}`},
		{`plan = NULL, burst_capacity = 30`, `endpoint:/a:user:{user_id} custom 10.50/30 - -/- v3 {"name": "r", "match": {"path": "/a"}, ` +
			`"limit_keys": ["jwt:sub"], "algorithm_config": {"rps": 10.50, "burst": 30}}`},
		{`key_pattern = 'ip:{ip}'`, `ip:{ip} ip 10.50/30 - -/- v4 {"name": "r", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 10.50, "burst": 30}}`},
		// Spec changes columns.
		{`spec = jsonb_set(spec, '{algorithm_config,rps}', '7')`, `ip:{ip} ip 7/30 - -/- v5 {"name": "r", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 7, "burst": 30}}`},
		{`spec = spec || '{"match": {"jwt:plan": "pro", "method": "GET"}, "mode": "25%"}'`, `ip:{ip} ip 7/30 pro -/- v6 {"mode": "25%", "name": "r", ` +
			`"match": {"method": "GET", "jwt:plan": "pro"}, "limit_keys": ["ip:address"], "algorithm_config": {"rps": 7, "burst": 30}}`},
		{`spec = spec || '{"match": {"jwt:plan": ["pro", "free"]}}'`, `ip:{ip} ip 7/30 - -/- v7 {"mode": "25%", "name": "r", ` +
			`"match": {"jwt:plan": ["pro", "free"]}, "limit_keys": ["ip:address"], "algorithm_config": {"rps": 7, "burst": 30}}`},
		{`spec = '{"name": "r", "limit_keys": ["jwt:tenant", "header:x", "shelf"], "match": {"path": "/b"}, "algorithm_config": {"rate": "5/1m", "burst": "10s"}}'`,
			`endpoint:/b:tenant:{tenant}:{header:x}:{attribute:shelf} custom -/- - -/- v8 {"name": "r", "match": {"path": "/b"}, ` +
				`"limit_keys": ["jwt:tenant", "header:x", "shelf"], "algorithm_config": {"rate": "5/1m", "burst": "10s"}}`},
		{`spec = '{"name": "r", "limit_keys": ["header:x{"], "algorithm": "sliding_window", "algorithm_config": {"tokens": 100, "window": "1m"}}'`,
			`custom custom -/- - 100/1m v9 {"name": "r", "algorithm": "sliding_window", "limit_keys": ["header:x{"], "algorithm_config": {"tokens": 100, "window": "1m"}}`},
		{`spec = '{"name": "r", "limit_keys": [], "limits": [{"rps": 1, "burst": 2}]}'`, `global global -/- - -/- v10 {"name": "r", "limits": [{"rps": 1, "burst": 2}], "limit_keys": []}`},
		{`rate_per_second = NULL, spec = spec || '{"match": {}}'`, `global global -/- - -/- v10 {"name": "r", "limits": [{"rps": 1, "burst": 2}], "limit_keys": []}`},
		// Both at once: columns come last.
		{`spec = '{"name": "r", "limit_keys": [], "algorithm_config": {"tokens_per_second": 1, "burst": 2}}', key_pattern = '{ip}', rate_per_second = 3`,
			`{ip} custom 3/2 - -/- v11 {"name": "r", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 3, "burst": 2}}`},
		{`spec = (spec || '{"name": "r", "mode": "enforce"}') - 'mode'`, `{ip} custom 3/2 - -/- v11 {"name": "r", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 3, "burst": 2}}`},
	} {
		d.must(`UPDATE {schema}.rate_limit_rule SET ` + tt.set)
		if got := d.columnsOf("r"); got != tt.want {
			t.Errorf("after SET %s:\n got %s\nwant %s", tt.set, got, tt.want)
		}
	}
	d.must(`UPDATE {schema}.rate_limit_rule SET spec = spec || '{"name": "s"}'`)
	if got := d.columnsOf("s"); !strings.HasSuffix(got, `v12 {"name": "s", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 3, "burst": 2}}`) {
		t.Errorf("the rule has not the name of its spec: %s", got)
	}
}

// A word with another attribute changes all rules whose pattern or plan has the word,
// and no others.
func TestTable_WordsChangeRules(t *testing.T) {
	d := newDatabase(t)
	d.must(`INSERT INTO {schema}.rate_limit_rule (name, key_pattern, rate_per_second, burst_capacity, plan) VALUES
		('a', 'user:{user_id}', 1, 1, 'free'), ('b', 'user:42', 1, 1, NULL), ('c', 'user:{jwt:sub}', 1, 1, NULL), ('d', '{user}:{ip}', 1, 1, NULL)`)
	d.must(`UPDATE {schema}.rate_limit_attribute SET attribute = 'header:x-user' WHERE name IN ('user', 'user_id')`)
	d.must(`UPDATE {schema}.rate_limit_attribute SET attribute = 'header:x-plan' WHERE name = 'plan'`)
	request := policy.Map{"jwt:sub": "7", "header:x-user": "42", "header:x-plan": "free", "ip:address": "192.0.2.1"}
	if got, want := falls(d.load(), request), "a:x-user=42 b: c:sub=7 d:x-user=42|ip=192.0.2.1"; got != want {
		t.Errorf("a request falls under %q, want %q", got, want)
	}
	want := "user:{user_id} free, user:42 -, user:{jwt:sub} -, {user}:{ip} -"
	if got := strings.Join(d.query(`SELECT key_pattern || ' ' || coalesce(plan, '-') FROM {schema}.rate_limit_rule ORDER BY name`), ", "); got != want {
		t.Errorf("the patterns and plans are %s, want %s", got, want)
	}
	// A word that is gone leaves the rules as they are, and their patterns can be changed.
	d.must(`DELETE FROM {schema}.rate_limit_attribute WHERE name IN ('user', 'plan')`)
	d.must(`UPDATE {schema}.rate_limit_rule SET priority = 1`)
	if got, want := falls(d.load(), request), "a:x-user=42 b: c:sub=7 d:x-user=42|ip=192.0.2.1"; got != want {
		t.Errorf("without the words, a request falls under %q, want %q", got, want)
	}
	d.must(`UPDATE {schema}.rate_limit_rule SET key_pattern = 'ip:{ip}' WHERE name = 'd'`)
	if err := d.exec(`UPDATE {schema}.rate_limit_rule SET plan = 'pro' WHERE name = 'a'`); refusedBy(err) != "rate_limit_rule_plan_check" {
		t.Errorf("a plan that stands for no attribute: %v", err)
	}
}
