// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/pgstore/violations"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// documentedGrants returns the statements in doc/postgres.md for a server that may not change tables.
func documentedGrants(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../doc/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin = "CREATE ROLE mete_server "
	_, rest, found := strings.Cut(string(text), begin)
	if !found {
		t.Fatalf("doc/postgres.md has no %s", begin)
	}
	rest, _, _ = strings.Cut(rest, "\n\n")
	return begin + rest
}

// asServer returns the URL of a database with an existing schema, for the documented user.
func asServer(t *testing.T) string {
	t.Helper()
	p := proctest.StartPostgres(t)
	if err := pgstore.Migrate(t.Context(), poolTo(t, p.URL()), "mete"); err != nil {
		t.Fatal(err)
	}
	if text, err := p.Psql(documentedGrants(t) + "CREATE TABLE other (a int);"); err != nil {
		t.Fatalf("%s, %v", text, err)
	}
	return strings.Replace(p.URL(), "//postgres@", "//mete_server:PASSWORD@", 1)
}

// TestGrants proves that the documented user can do everything that a store does, and no more.
func TestGrants(t *testing.T) {
	t.Parallel()
	url := asServer(t)
	n := openURL(t, url+"&durable=true")
	if _, err := n.DeriveKey(t.Context(), "test"); err != nil {
		t.Error(err)
	}
	spend(t, n, "rule:k")
	pool := poolTo(t, url)
	prefix := prefixes()
	storetest.RunDocuments(t, func(t *testing.T) func() store.Documents {
		config := pgstore.Config{Prefix: prefix(), Timeout: awhile}
		return func() store.Documents { return open(t, pool, config) }
	})
	storetest.RunBriefly(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
		return open(t, pool, pgstore.Config{Prefix: prefix(), Now: now, Timeout: awhile})
	})
	for _, durable := range []bool{false, true} {
		s := open(t, pool, pgstore.Config{Prefix: prefix(), Durable: durable, SweepEvery: time.Millisecond, Timeout: awhile})
		swept(t, s)
		if err := s.Clear(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, statement := range []string{
		"DELETE FROM mete.document", "CREATE TABLE mete.mine ()", "CREATE SCHEMA mine", "DROP TABLE mete.bucket", "ALTER TABLE mete.bucket SET LOGGED",
		"SELECT * FROM other", "DELETE FROM mete.secret", "UPDATE mete.secret SET secret = 'x'", "INSERT INTO mete.migration VALUES (9999, 'x')",
		"UPDATE mete.rate_limit_rule SET is_active = false", "UPDATE mete.rate_limit_violation SET denials = 1",
	} {
		const insufficientPrivilege = "42501"
		_, err := pool.Exec(t.Context(), statement)
		if refusal, ok := errors.AsType[*pgconn.PgError](err); !ok || refusal.Code != insufficientPrivilege {
			t.Errorf("%s: %v, want %s", statement, err, insufficientPrivilege)
		}
	}
}

// swept asserts that a full bucket is swept.
func swept(t *testing.T, s *pgstore.Store) {
	t.Helper()
	l, err := bucket.NewLimit(bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	charges := []store.Charge{{Key: "soon full", Limit: l, Cost: bucket.Token}}
	if _, _, err := s.Take(t.Context(), nil, charges, mete.Mode{}); err != nil {
		t.Fatal(err)
	}
	err = proctest.Poll(t.Context(), func(context.Context) error {
		if s.Stats().Swept == 0 {
			return errors.New("nothing is swept")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestGrants_RulesAndViolations proves that the user can also follow rules and record violations.
func TestGrants_RulesAndViolations(t *testing.T) {
	url := asServer(t)
	source, err := rules.Open(t.Context(), url, rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	if _, err := source.Read(t.Context()); err != nil {
		t.Error(err)
	}
	pool := poolTo(t, url)
	if _, err := violations.DeriveKey(t.Context(), pool, "mete"); err != nil {
		t.Error(err)
	}
	recorder, err := violations.New(pool, violations.Config{Schema: "mete", Raw: true})
	if err != nil {
		t.Fatal(err)
	}
	recorder.Record(t.Context(), &mete.Denial{Decision: mete.Decision{Rule: "r", Reason: "denied"}, Attributes: mete.Attrs(nil)})
	if err := recorder.Close(); err != nil {
		t.Error(err)
	}
	if got := recorder.Stats(); got.Written != 1 || got.Failed != 0 {
		t.Errorf("stats %+v, want one denial written, and nothing failed", got)
	}
	if _, err := pool.Exec(t.Context(), "SELECT mete.rate_limit_violation_maintain(NULL, interval '30 days')"); err != nil {
		t.Error(err)
	}
}
