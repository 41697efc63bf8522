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

// Migrate makes the schema of this name, which is [DefaultSchema] if empty, and
// what is missing in it: tables for buckets, rules, violations and nodes. A name
// has 1 to 63 bytes, none of them ' $ \ or %. Any number of processes may do so at
// once, also by way of a pooler. Where nothing is missing it is one query, and what
// a later version of mete has added stays. It takes no longer than a minute.
//
// The user needs the right to create schemas in the database; or there is a schema
// that belongs to it, as after
//
//	CREATE SCHEMA mete AUTHORIZATION "user";
//
// A user who may not create anything can use what another has made, by Migrate or
// by the script of [MigrationSQL], and has granted:
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

// MigrationSQL returns what [Migrate] does as a script, for those who run such
// things themselves, with psql -f. It makes only what is missing, so it may be run
// as often as they like, and with every new version.
func MigrationSQL(name string) (string, error) {
	script, err := schema.SQL(cmp.Or(name, DefaultSchema))
	if err != nil {
		return "", fmt.Errorf("pgstore: migrate: %w", err)
	}
	return script, nil
}
