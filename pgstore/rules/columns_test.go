// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
)

// columnsOf returns the columns of the rule r, and its spec.
func (d *database) columnsOf(name string) string {
	d.t.Helper()
	return strings.Join(d.query(fmt.Sprintf(`SELECT concat_ws(' ', key_pattern, scope, coalesce(rate_per_second::text, '-') || '/' || coalesce(burst_capacity::text, '-'),
		coalesce(plan, '-'), coalesce(window_tokens::text, '-') || '/' || coalesce(window_length, '-'), 'v' || version, spec) FROM {schema}.rate_limit_rule WHERE name = '%s'`, name)), "\n")
}

// TestTable_ColumnsAndSpecAgree proves that columns follow spec, and spec follows columns.
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
		// Both at once: columns win.
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

// TestTable_WordsChangeRules maps a word to another attribute. All rules with the word in their pattern or plan
// change, and no others.
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
	// A deleted word leaves the rules unchanged, and their patterns can be changed.
	d.must(`DELETE FROM {schema}.rate_limit_attribute WHERE name IN ('user', 'plan')`)
	d.must(`UPDATE {schema}.rate_limit_rule SET priority = 1`)
	if got, want := falls(d.load(), request), "a:x-user=42 b: c:sub=7 d:x-user=42|ip=192.0.2.1"; got != want {
		t.Errorf("without the words, a request falls under %q, want %q", got, want)
	}
	d.must(`UPDATE {schema}.rate_limit_rule SET key_pattern = 'ip:{ip}' WHERE name = 'd'`)
	if err := d.exec(`UPDATE {schema}.rate_limit_rule SET plan = 'pro' WHERE name = 'a'`); refusedBy(err) != "rate_limit_rule_plan_check" {
		t.Errorf("a plan without an attribute: %v", err)
	}
}

// TestTable_RowsInsertBack inserts a row back unchanged, for every form of the limit in spec.
func TestTable_RowsInsertBack(t *testing.T) {
	d := newDatabase(t)
	const columns = `rule_id, name, key_pattern, scope, rate_per_second, burst_capacity, plan, is_active, description, priority, policy, is_fallback, spec, version, created_at, updated_at`
	insertBack := func(what string) (rows int) {
		t.Helper()
		const text = `SELECT r::text FROM {schema}.rate_limit_rule r ORDER BY rule_id`
		before := d.query(text)
		d.must(`CREATE TABLE {schema}.copied AS SELECT * FROM {schema}.rate_limit_rule; DELETE FROM {schema}.rate_limit_rule`)
		if err := d.exec(`INSERT INTO {schema}.rate_limit_rule (` + columns + `) SELECT ` + columns + ` FROM {schema}.copied`); err != nil {
			t.Errorf("%s: INSERT of rows that were in the table: %v\n%s", what, err, strings.Join(before, "\n"))
		} else if after := d.query(text); !slices.Equal(after, before) {
			t.Errorf("%s: rows inserted back are\n%s\nwant\n%s", what, strings.Join(after, "\n"), strings.Join(before, "\n"))
		}
		d.must(`DELETE FROM {schema}.rate_limit_rule; DROP TABLE {schema}.copied`)
		return len(before)
	}
	for _, spec := range []string{
		`{"algorithm_config": {"tokens_per_second": 5, "burst": 10}}`,
		`{"algorithm_config": {"rps": 5.00, "burst": 10.0}, "match": {"path": "/a", "jwt:plan": "free"}, "description": "text"}`,
		`{"algorithm_config": {"rps": 5, "tokens_per_second": 6, "burst": 10}}`,
		`{"algorithm_config": {"rps": 5}}`,
		`{"algorithm_config": {"rps": 0.5, "burst": "10s"}, "match": {"jwt:plan": ["free", "pro"]}}`,
		`{"algorithm_config": {"rate": "5/1m", "burst": 10}}`,
		`{"algorithm_config": {"rate": "5/1m", "burst": "300s"}, "limit_keys": ["header:x{"]}`,
		`{"algorithm_config": {"rps": 0, "burst": 0.5}, "description": 7}`,
		`{"algorithm_config": {"rps": 5, "burst": 10}, "limits": [{"rps": 1, "burst": 1}]}`,
		`{"limits": [{"rps": 1, "burst": 1}]}`,
		`{"algorithm": "token_bucket", "algorithm_config": {"tokens_per_second": 5, "burst": 10, "staged_actions": []}}`,
		`{"algorithm": "sliding_window", "algorithm_config": {"tokens": 100, "window": "1m"}}`,
		`{"algorithm": "cost_based", "algorithm_config": {"budget": 1000, "period": "1d"}}`,
		`{"algorithm": "sliding_log", "algorithm_config": {"rps": 5, "burst": 10}}`,
		`{"algorithm_config": {"tokens_per_second": 5, "burst": 10}, "limit_keys": ["jwt:tenant", "shelf", "ip:address/48"], "match": {"method": "GET"}}`,
	} {
		d.must(`INSERT INTO {schema}.rate_limit_rule (spec) VALUES ('{"limit_keys": ["jwt:sub"]}'::jsonb || $1::text::jsonb)`, spec)
		insertBack(spec)
		d.must(`INSERT INTO {schema}.rate_limit_rule (is_fallback, spec) VALUES (true, $1::text::jsonb)`, spec)
		insertBack("the fallback " + spec)
	}
	d.must(`INSERT INTO {schema}.rate_limit_rule (name, key_pattern, rate_per_second, burst_capacity, plan) VALUES
		('r', 'endpoint:/a:user:{user_id}', 10.50, 20, 'free'), ('s', 'tenant:acme:user:{tenant}', 1, 1, NULL), ('t', 'global', 1, 1, NULL)`)
	insertBack("rows of columns")
	imported := 0
	files := corpus(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := d.Edit(t.Context(), false, func(s *rules.Set) error { return s.Import(files[name], true) }); err == nil {
			imported += insertBack(name)
		}
	}
	if imported < 20 {
		t.Errorf("the corpus has only %d rows", imported)
	}
}

// TestTable_RowsCopy copies a row under another name, if its spec has no name.
func TestTable_RowsCopy(t *testing.T) {
	d := newDatabase(t)
	d.must(`INSERT INTO {schema}.rate_limit_rule (spec) VALUES
		('{"name": "r", "limit_keys": ["jwt:sub"], "algorithm_config": {"tokens_per_second": 5, "burst": 10}}')`)
	d.must(`INSERT INTO {schema}.rate_limit_rule (name, key_pattern, scope, rate_per_second, burst_capacity, is_active, spec)
		SELECT 's', key_pattern, scope, rate_per_second, burst_capacity, false, spec - 'name' FROM {schema}.rate_limit_rule`)
	want := `user:{user_id} user 5/10 - -/- v1 {"name": "s", "limit_keys": ["jwt:sub"], "algorithm_config": {"burst": 10, "tokens_per_second": 5}}`
	if got := d.columnsOf("s"); got != want {
		t.Errorf("the copy is\n%s, want\n%s", got, want)
	}
}

// TestTable_WordChangesLabelAndPlaceholder changes a word that is both a label and a placeholder of one pattern.
func TestTable_WordChangesLabelAndPlaceholder(t *testing.T) {
	d := newDatabase(t)
	d.must(`INSERT INTO {schema}.rate_limit_rule (name, key_pattern, rate_per_second, burst_capacity) VALUES
		('both', 'tenant:acme:user:{tenant}', 1, 1), ('other', 'ip:tenant:user:{attribute:tenant:x}', 1, 1)`)
	other := d.columnsOf("other")
	d.must(`UPDATE {schema}.rate_limit_attribute SET attribute = 'jwt:org2' WHERE name = 'tenant'`)
	want := `tenant:acme:user:{tenant} custom 1/1 - -/- v2 {"name": "both", "match": {"jwt:org2": "acme"}, "limit_keys": ["jwt:org2"], "algorithm_config": {"rps": 1, "burst": 1}}`
	if got := d.columnsOf("both"); got != want {
		t.Errorf("the rule is\n%s, want\n%s", got, want)
	}
	if got := d.columnsOf("other"); got != other {
		t.Errorf("a rule without the word is\n%s, want\n%s", got, other)
	}
}

// TestTable_WordChangesRulesBeingInserted changes a word while a rule is inserted: the rule gets the new
// attribute.
func TestTable_WordChangesRulesBeingInserted(t *testing.T) {
	d := newDatabase(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begin := func() (*pgx.Conn, func(sql string) error) {
		conn, err := d.connect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.Background()) })
		return conn, func(sql string) error {
			_, err := conn.Exec(ctx, strings.ReplaceAll(sql, "{schema}", d.schema))
			return err
		}
	}
	_, inserts := begin()
	conn, changes := begin()
	pid := conn.PgConn().PID()
	const rule = `INSERT INTO {schema}.rate_limit_rule (name, key_pattern, rate_per_second, burst_capacity) VALUES `
	if err := errors.Join(inserts(`BEGIN`), inserts(rule+`('before', 'tenant:{tenant}', 1, 1)`)); err != nil {
		t.Fatal(err)
	}
	changed := make(chan error, 1)
	go func() {
		changed <- changes(`UPDATE {schema}.rate_limit_attribute SET attribute = 'jwt:org2' WHERE name = 'tenant'`)
	}()
	select {
	case err := <-changed:
		t.Errorf("the word changed while a rule with it was being inserted: %v", err)
		changed <- err
	case <-time.After(10 * time.Millisecond):
		d.eventually("the word waits for the rule", func() bool {
			return len(changed) > 0 || len(d.query(fmt.Sprintf(`SELECT pid::text FROM pg_locks WHERE pid = %d AND NOT granted`, pid))) > 0
		})
	}
	if err := errors.Join(inserts(`COMMIT`), <-changed); err != nil {
		t.Fatal(err)
	}
	if got, want := falls(d.load(), policy.Map{"jwt:org2": "acme"}), "before:org2=acme"; got != want {
		t.Errorf("a request falls under %q, want %q", got, want)
	}
}
