// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
)

func TestMigrate(t *testing.T) {
	server := proctest.StartPostgres(t)
	pool := poolTo(t, server.URL())
	for range 2 {
		if err := pgstore.Migrate(t.Context(), pool, ""); err != nil {
			t.Fatal(err)
		}
	}
	script, err := pgstore.MigrationSQL("other")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := server.Psql(script); err != nil {
		t.Fatal(text, err)
	}
	const tables = "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = "
	want, err := server.Psql(tables + "'other'::regnamespace")
	if err != nil || !strings.HasPrefix(want, "bucket bucket_durable ") || !strings.HasSuffix(want, " secret") {
		t.Errorf("tables by the script: %q, %v", want, err)
	}
	if got, err := server.Psql(tables + "'" + pgstore.DefaultSchema + "'::regnamespace"); err != nil || got != want {
		t.Errorf("tables by Migrate: %q, %v; want %q, as by the script", got, err, want)
	}
}

func TestMigrate_Fails(t *testing.T) {
	if err := pgstore.Migrate(t.Context(), nil, ""); err == nil {
		t.Error("without a pool: no error")
	}
	if _, err := pgstore.MigrationSQL("pg_x"); err == nil || !strings.HasPrefix(err.Error(), "pgstore: migrate: schema: ") {
		t.Errorf("a name of PostgreSQL's own: %v", err)
	}
}
