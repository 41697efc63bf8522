// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
)

// patience bounds every wait of these tests. Nothing waits that long.
const patience = time.Minute

// A database is a schema with the tables of rules.
type database struct {
	t      testing.TB
	url    string
	schema string
	*rules.Source
}

// newDatabase creates the tables in a new schema.
func newDatabase(t testing.TB) *database {
	t.Helper()
	return openDatabase(t, proctest.PostgresURL(t), proctest.PostgresSchema(t), rules.Config{})
}

// openDatabase opens a schema through the server at the URL.
func openDatabase(t testing.TB, at, schema string, config rules.Config) *database {
	t.Helper()
	d := &database{t: t, url: withSchema(t, at, schema), schema: schema}
	var err error
	if d.Source, err = rules.Open(t.Context(), d.url, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Source.Close)
	return d
}

func withSchema(t testing.TB, at, schema string) string {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("schema", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

// exec runs one statement like a user of psql. {schema} stands for the schema.
func (d *database) exec(sql string, args ...any) error {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, strings.ReplaceAll(sql, "{schema}", d.schema), args...)
	return err
}

// must runs a statement that succeeds.
func (d *database) must(sql string, args ...any) {
	d.t.Helper()
	if err := d.exec(sql, args...); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
}

// insert adds a row with these columns, as SQL.
func (d *database) insert(columns, values string) error {
	return d.exec("INSERT INTO {schema}.rate_limit_rule (" + columns + ") VALUES (" + values + ")")
}

// refusedBy returns the constraint that rejected a statement.
func refusedBy(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.ConstraintName
	}
	return ""
}

// load compiles the tables.
func (d *database) load() *policy.Matcher {
	d.t.Helper()
	m, _, err := d.Load(d.t.Context(), options)
	if err != nil {
		d.t.Fatal(err)
	}
	return m
}

// rows reads all rows.
func (d *database) rows() *rules.Set {
	d.t.Helper()
	set, err := d.Read(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return set
}

// falls returns the limits that apply to a request, with their keys.
func falls(m *policy.Matcher, request policy.Map) string {
	matches, _ := m.Match(nil, request, 0, 0)
	var keys []string
	for _, match := range matches {
		keys = append(keys, match.Key)
	}
	return strings.Join(keys, " ")
}

// query returns the first column of all rows, as text.
func (d *database) query(sql string) (found []string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := d.connect(ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, strings.ReplaceAll(sql, "{schema}", d.schema), pgx.QueryExecModeSimpleProtocol)
	if err == nil {
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) { return string(row.RawValues()[0]), nil })
	}
	if err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	return found
}

// connect opens a separate connection for the test.
func (d *database) connect(ctx context.Context) (*pgx.Conn, error) {
	u, err := url.Parse(d.url)
	if err != nil {
		return nil, err
	}
	q := u.Query()
	q.Del("schema")
	u.RawQuery = q.Encode()
	config, err := pgx.ParseConfig(u.String())
	if err != nil {
		return nil, err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return pgx.ConnectConfig(ctx, config)
}

// eventually waits until ok is true.
func (d *database) eventually(what string, ok func() bool) {
	d.t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(patience)
	for !ok() {
		select {
		case <-ticker.C:
		case <-timeout:
			d.t.Fatalf("timeout: %s", what)
		}
	}
}

// TestRead_DateStyle proves that a user's date and interval styles have no effect.
func TestRead_DateStyle(t *testing.T) {
	p := proctest.StartPostgres(t)
	d := openDatabase(t, p.URL(), "mete", rules.Config{})
	d.must(`ALTER USER postgres SET datestyle = 'SQL, DMY'; ALTER USER postgres SET timezone = 'Asia/Kolkata'`)
	d = openDatabase(t, p.URL(), "mete", rules.Config{})
	d.source()
	d.must(`UPDATE {schema}.rate_limit_rule SET created_at = '2026-11-21 12:34:56.789012+00' WHERE name = 'user-free'`)
	d.load()
	if got, want := d.rows().Rules[0].CreatedAt, time.Date(2026, 11, 21, 12, 34, 56, 789012000, time.UTC); !got.Equal(want) {
		t.Errorf("created at %v, want %v", got, want)
	}
	d.must(`UPDATE {schema}.rate_limit_rule SET created_at = 'infinity' WHERE name = 'user-free'`)
	d.load()
}

// TestTriggers_AreNobodyElses proves that a user with only USAGE on the schema cannot make servers read the
// rules, or learn their names.
func TestTriggers_AreNobodyElses(t *testing.T) {
	p := proctest.StartPostgres(t)
	d := openDatabase(t, p.URL(), "mete", rules.Config{})
	d.must(`CREATE USER stranger; GRANT USAGE ON SCHEMA {schema} TO stranger; CREATE SCHEMA strange AUTHORIZATION stranger`)
	for _, function := range []string{"rate_limit_changed", "rate_limit_violation_row"} {
		err := d.exec(`SET ROLE stranger; CREATE TABLE strange.` + function + ` (rule_id bigint, rule_name text);
			CREATE TRIGGER t BEFORE INSERT ON strange.` + function + ` FOR EACH ROW EXECUTE FUNCTION {schema}.` + function + `()`)
		if err == nil || !strings.Contains(err.Error(), "permission denied for function mete."+function) {
			t.Errorf("a trigger of a stranger with %s: %v, want that permission is denied", function, err)
		}
	}
}

// TestClose_ServerHangs proves that Close ends while the server hangs.
func TestClose_ServerHangs(t *testing.T) {
	p := proctest.StartPostgres(t)
	d := openDatabase(t, p.URL(), "mete", rules.Config{})
	d.source()
	d.load()
	p.Pause()
	defer p.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, _, err := d.Load(ctx, options); err == nil {
		t.Fatal("Load from a server that hangs: no error")
	}
	start := time.Now()
	d.Close()
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("Close took %v, want about a second", took)
	}
}
