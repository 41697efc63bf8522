// SPDX-License-Identifier: Apache-2.0

package violations_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/pgstore/internal/schema"
	"github.com/metehq/mete/pgstore/violations"
	"github.com/metehq/mete/policy"
)

// A database has the table in a schema of its own.
type database struct {
	t      testing.TB
	url    string
	schema string
	pool   *pgxpool.Pool
}

// patience bounds every wait of these tests. Nothing waits that long.
const patience = 30 * time.Second

var hashKey = []byte("a key of the test")

// newDatabase uses the shared server.
func newDatabase(t testing.TB) *database {
	t.Helper()
	return migrated(t, proctest.PostgresURL(t), proctest.PostgresSchema(t))
}

// migrated creates the tables.
func migrated(t testing.TB, url, name string) *database {
	t.Helper()
	d := &database{t: t, url: url, schema: name, pool: connect(t, url)}
	if err := schema.Migrate(context.Background(), d.pool, name); err != nil {
		t.Fatal(err)
	}
	return d
}

// connect returns a pool that does not wait for the server.
func connect(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 4
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// table returns a quoted name in the schema, the table's by default.
func (d *database) table(suffix string) string {
	return pgx.Identifier{d.schema, "rate_limit_violation" + suffix}.Sanitize()
}

func (d *database) exec(sql string, args ...any) {
	d.t.Helper()
	if len(args) == 0 {
		args = append(args, pgx.QueryExecModeSimpleProtocol)
	}
	if _, err := d.pool.Exec(context.Background(), sql, args...); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
}

// one returns the single value of a query.
func one[T any](d *database, sql string, args ...any) (v T) {
	d.t.Helper()
	if err := d.pool.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// denials returns the number of denials in the table.
func (d *database) denials() int64 {
	d.t.Helper()
	return one[int64](d, "SELECT coalesce(sum(denials), 0)::bigint FROM "+d.table(""))
}

// recorder returns a recorder with short windows, which is closed at the end of the test.
func (d *database) recorder(change func(*violations.Config)) *violations.Recorder {
	d.t.Helper()
	config := violations.Config{Schema: d.schema, Key: hashKey, Window: 10 * time.Millisecond, Node: "node-1"}
	if change != nil {
		change(&config)
	}
	r, err := violations.New(d.pool, config)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { r.Close() })
	return r
}

// reader returns a reader with the key.
func (d *database) reader() *violations.Reader {
	d.t.Helper()
	r, err := violations.NewReader(d.pool, violations.Config{Schema: d.schema, Key: hashKey})
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

// denial returns a denial of a rule with one limit, for the bucket with this key.
func denial(rule, key string, attrs mete.Attrs) *mete.Denial {
	limit, err := bucket.NewLimit(10*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Second})
	if err != nil {
		panic(err)
	}
	status := mete.Status{
		Rule: &policy.Rule{Name: rule}, Limit: &policy.Limit{Name: rule, Reason: "token_bucket_exceeded"}, Key: key,
		Snapshot: bucket.Snapshot{Limit: limit, Cost: 2 * bucket.Token, RetryAfter: 1500 * time.Millisecond},
	}
	return &mete.Denial{
		Decision:   mete.Decision{Rule: rule, Reason: "token_bucket_exceeded", RetryAfter: status.RetryAfter}.WithLimits(status),
		Attributes: attrs,
	}
}

// shadowed is denial for a shadow rule.
func shadowed(rule, key string, attrs mete.Attrs) *mete.Denial {
	d := denial(rule, key, attrs)
	return &mete.Denial{Decision: mete.Decision{Allowed: true, Shadow: d.Limits()}, Attributes: attrs}
}

// settle waits until no denial waits for a write.
func settle(t testing.TB, r *violations.Recorder) violations.Stats {
	t.Helper()
	testkit.Eventually(t, "the database and its recorder", func() error {
		if s := r.Stats(); s.Waiting != 0 {
			return fmt.Errorf("%d denials wait to be written: %+v", s.Waiting, s)
		}
		return nil
	})
	return r.Stats()
}
