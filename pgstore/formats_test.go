// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/pgstore/violations"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

var formats = flag.String("formats", "", "write the stored formats of this `version`, such as dev or v0.1.0, to testdata/formats")

// formatsSchema is the name of the schema in testdata/formats.
const formatsSchema = "formats_schema"

// storedTables are the tables with a file of rows in testdata/formats.
var storedTables = []string{"bucket", "bucket_memory", "document", "secret", "rate_limit_policy", "rate_limit_rule", "rate_limit_violation"}

// TestFormats migrates and reads the schemas of earlier versions. Decisions, rules and violations must be
// unchanged. The schema is stored as a script, because a migration never changes after its release.
func TestFormats(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	config := func(schema string, now func() bucket.Instant) pgstore.Config {
		return pgstore.Config{Schema: schema, Now: now, Timeout: awhile, SweepEvery: -1}
	}
	var schema string // of the last store that Open returned
	storetest.Formats{
		Dir: "testdata/formats", Write: *formats,
		Open: func(t *testing.T, now func() bucket.Instant) mete.Store {
			schema = migrated(t, pool)
			return open(t, pool, config(schema, now))
		},
		Save: func(t *testing.T, _ mete.Store, dir string) {
			saveFormats(t, pool, schema, dir)
		},
		Load: func(t *testing.T, dir string, now func() bucket.Instant) mete.Store {
			name := loadFormats(t, pool, dir)
			if err := pgstore.Migrate(t.Context(), pool, name); err != nil {
				t.Fatal(err)
			}
			for file, got := range map[string]string{"rules.json": rulesOf(t, pool, name), "violations.json": violationsOf(t, pool, name)} {
				if want := fileText(t, filepath.Join(dir, file)); got != want {
					t.Errorf("%s:\n got %s\nwant %s", file, got, want)
				}
			}
			return open(t, pool, config(name, now))
		},
	}.Run(t)
}

// saveFormats adds a rule and a violation to a schema, and writes the schema to files.
func saveFormats(t *testing.T, pool *pgxpool.Pool, schema, dir string) {
	t.Helper()
	source, err := rules.New(t.Context(), pool, rules.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	_, err = source.Edit(t.Context(), false, func(s *rules.Set) error {
		return s.Import([]byte(`{"headers": "legacy", "rules": [
			{"name": "per-user", "limit_keys": ["jwt:sub"], "algorithm": "token_bucket", "algorithm_config": {"rps": 2.5, "burst": 10}, "match": {"path": "/api/*"}},
			{"name": "window", "limit_keys": ["ip:address"], "mode": "shadow", "algorithm": "sliding_window", "algorithm_config": {"tokens": 100, "window": "1m"}}
		]}`), true)
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, pool, `INSERT INTO `+schema+`.rate_limit_violation (violation_id, bucket_key, user_id, ip_address, endpoint, requested_at,
		tokens_at_time, rule_name, limit_name, reason, cost, retry_after, denials, last_at, shadow, node)
		VALUES (7, 'per-user:jwt=~abc', '~abc', '192.0.2.0/24', 'GET /api/search', '2023-11-14 22:13:20+00',
		0.5, 'per-user', '2.5/1s', 'token_bucket_exceeded', 3, '1.5 seconds', 2, '2023-11-14 22:13:21+00', true, 'node-1')`)
	script, err := pgstore.MigrationSQL(formatsSchema)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"schema.sql": script, "rules.json": rulesOf(t, pool, schema), "violations.json": violationsOf(t, pool, schema)}
	for _, table := range storedTables {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var rows bytes.Buffer
		_, err = conn.Conn().PgConn().CopyTo(t.Context(), &rows, "COPY (SELECT "+columnsOf(t, pool, schema, table)+" FROM "+schema+"."+table+" AS r ORDER BY r::text) TO STDOUT")
		conn.Release()
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		files[table+".copy"] = rows.String()
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// loadFormats creates a schema from files in the version that wrote them, and returns its name.
func loadFormats(t *testing.T, pool *pgxpool.Pool, dir string) string {
	t.Helper()
	name := proctest.PostgresSchema(t)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	script := strings.ReplaceAll(fileText(t, filepath.Join(dir, "schema.sql")), formatsSchema, name)
	if _, err := conn.Conn().PgConn().Exec(t.Context(), script).ReadAll(); err != nil {
		t.Fatalf("schema.sql: %v", err)
	}
	for _, table := range storedTables {
		text := fileText(t, filepath.Join(dir, table+".copy"))
		if _, err := conn.Conn().PgConn().CopyFrom(t.Context(), strings.NewReader(text), "COPY "+name+"."+table+" ("+columnsOf(t, pool, name, table)+") FROM STDIN"); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
	}
	// The server's clock has advanced since, and these rows must not be swept.
	run(t, pool, "UPDATE "+name+".bucket_memory SET until = until + 1000000::bigint * 86400 * 36500")
	return name
}

// columnsOf returns the columns of a table that are not generated.
func columnsOf(t *testing.T, pool *pgxpool.Pool, schema, table string) (columns string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT string_agg(attname, ', ' ORDER BY attnum) FROM pg_attribute
		WHERE attrelid = format('%I.%I', $1::text, $2::text)::regclass AND attnum > 0 AND attgenerated = '' AND NOT attisdropped`, schema, table).Scan(&columns); err != nil {
		t.Fatal(err)
	}
	return columns
}

func fileText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rulesOf returns the policy of a schema.
func rulesOf(t *testing.T, pool *pgxpool.Pool, schema string) string {
	t.Helper()
	source, err := rules.New(t.Context(), pool, rules.Config{Schema: schema, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	set, err := source.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Compile(policy.Options{}); err != nil {
		t.Fatal(err)
	}
	return string(set.Export())
}

// violationsOf returns the violations of a schema in JSON.
func violationsOf(t *testing.T, pool *pgxpool.Pool, schema string) string {
	t.Helper()
	reader, err := violations.NewReader(pool, violations.Config{Schema: schema, Raw: true})
	if err != nil {
		t.Fatal(err)
	}
	all, err := reader.List(t.Context(), violations.Query{Since: time.Unix(1_600_000_000, 0)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		all[i].At, all[i].Last = all[i].At.UTC(), all[i].Last.UTC()
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}
