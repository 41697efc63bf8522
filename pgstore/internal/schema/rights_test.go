// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore/internal/schema"
)

// await waits until a query returns this.
func await(t testing.TB, pool *pgxpool.Pool, sql, want string) {
	t.Helper()
	err := proctest.Poll(t.Context(), func(context.Context) error {
		if got := list(t, pool, sql); len(got) != 1 || got[0] != want {
			return fmt.Errorf("%s: %q, want %q", sql, got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMigrate_Rights proves that the error for missing privileges has a remedy that works.
func TestMigrate_Rights(t *testing.T) {
	server := proctest.StartPostgres(t)
	admin := connect(t, server.URL())
	run(t, admin, `CREATE USER "app user"`)
	user := connect(t, strings.Replace(server.URL(), "//postgres@", "//app%20user@", 1))

	refused := func(name, want string) {
		t.Helper()
		err := schema.Migrate(t.Context(), user, name)
		if err == nil || !strings.Contains(err.Error(), "permission denied for "+want) || !strings.Contains(err.Error(), `CREATE SCHEMA "`+name+`" AUTHORIZATION "app user"`) {
			t.Errorf("Migrate(%q): %v, want that permission is denied for %s, and what to do", name, err, want)
		}
	}
	refused("own", "database postgres")
	run(t, admin, `CREATE SCHEMA own AUTHORIZATION "app user"`)
	migrate(t, user, "own")

	run(t, admin, `CREATE SCHEMA other`)
	refused("other", "schema other")
	migrate(t, admin, "other")
	refused("other", "schema other")
	run(t, admin, `GRANT USAGE ON SCHEMA other TO "app user"; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA other TO "app user"`)
	migrate(t, user, "other")

	// A newer program has added another migration, which does no harm.
	run(t, admin, `INSERT INTO other.migration (version, name) VALUES (9999, 'later')`)
	if err := schema.Migrate(t.Context(), user, "other"); err != nil {
		t.Errorf("Migrate of a newer schema: %v", err)
	}
}

// TestMigrate_OldAndNew applies a missing migration even if later ones are applied.
func TestMigrate_OldAndNew(t *testing.T) {
	pool := connect(t, proctest.PostgresURL(t))
	name := proctest.PostgresSchema(t)
	migrate(t, pool, name)
	run(t, pool, fmt.Sprintf(`DELETE FROM %s.migration WHERE version = 4; DROP TABLE %[1]s.node, %[1]s.secret;
		INSERT INTO %[1]s.migration (version, name) VALUES (9999, 'later')`, name))
	if err := schema.Migrate(t.Context(), pool, name); err != nil {
		t.Fatal(err)
	}
	if got, want := versions(t, pool, name), append(inFiles(t), "9999_later.sql"); !slices.Equal(got, want) {
		t.Errorf("applied %q, want %q", got, want)
	}
	if got := list(t, pool, "SELECT prefix::text FROM "+name+".node"); len(got) > 0 {
		t.Errorf("nodes: %q", got)
	}
}

func TestMigrate_AnotherProgram(t *testing.T) {
	pool := connect(t, proctest.PostgresURL(t))
	name := proctest.PostgresSchema(t)
	run(t, pool, fmt.Sprintf(`CREATE SCHEMA %s; CREATE TABLE %[1]s.migration (version int PRIMARY KEY, name text);
		INSERT INTO %[1]s.migration VALUES (1, 'users')`, name))
	if err := schema.Migrate(t.Context(), pool, name); err == nil || !strings.Contains(err.Error(), `migration 1 is "users"`) {
		t.Errorf("Migrate over another program's schema: %v", err)
	}
}

// TestSQL proves that an admin's script creates everything, and can run again.
func TestSQL(t *testing.T) {
	server := proctest.StartPostgres(t)
	pool := connect(t, server.URL())
	for _, name := range []string{schema.Default, `We"ird schéma`} {
		script, err := schema.SQL(name)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if text, err := server.Psql(script); err != nil {
				t.Fatalf("%s, %v", text, err)
			}
		}
		if got, want := versions(t, pool, name), inFiles(t); !slices.Equal(got, want) {
			t.Errorf("applied %q, want %q", got, want)
		}
	}
}
