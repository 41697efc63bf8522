// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/pgstore/internal/schema"
)

// Migrate creates the schema of this name ([DefaultSchema] if empty) and its missing tables for buckets, rules,
// violations and nodes. A name has 1 to 63 bytes, and none of the characters ' $ \ and %. Processes can call
// Migrate concurrently, also through a pooler. If nothing is missing, it is one query. Migrate keeps additions of
// later versions of mete. It takes a minute at most.
//
// The user needs the right to create schemas in the database, or must own the schema, as after
//
//	CREATE SCHEMA mete AUTHORIZATION "user";
//
// A user without these rights can use a schema that Migrate or the script of [MigrationSQL] created for another
// user, after
//
//	GRANT USAGE ON SCHEMA mete TO "user";
//	GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA mete TO "user";
func Migrate(ctx context.Context, pool *pgxpool.Pool, name string) error {
	if pool == nil {
		return errors.New("pgstore: migrate: pool is required")
	}
	if err := schema.Migrate(ctx, pool, cmp.Or(name, DefaultSchema)); err != nil {
		return fmt.Errorf("pgstore: migrate: %w", err)
	}
	return nil
}

// MigrationSQL returns the work of [Migrate] as a script for psql -f. The script creates only missing objects, so
// it can run repeatedly, and again for each new version.
func MigrationSQL(name string) (string, error) {
	script, err := schema.SQL(cmp.Or(name, DefaultSchema))
	if err != nil {
		return "", fmt.Errorf("pgstore: migrate: %w", err)
	}
	return script, nil
}
