// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// timeout bounds one call of Migrate, which may wait for other processes.
const timeout = time.Minute

// SQLSTATE codes: https://www.postgresql.org/docs/current/errcodes-appendix.html.
const (
	insufficientPrivilege = "42501"
	undefinedTable        = "42P01"
	invalidSchemaName     = "3F000"
)

// Migrate creates the schema of this name, and applies its missing migrations. Processes can call it
// concurrently. If nothing is missing, it is one query. Migrate keeps additions of later versions of mete. It
// takes a minute at most.
func Migrate(ctx context.Context, pool *pgxpool.Pool, name string) error {
	if err := Check(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	there, err := readApplied(ctx, pool, name)
	if err != nil {
		return explain(err, pool, name)
	}
	missing, err := findMissing(there)
	if err != nil {
		return fmt.Errorf("schema %q: %w", name, err)
	}
	if len(missing) == 0 {
		return nil
	}
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}
	err = pgx.BeginTxFunc(ctx, pool, options, func(tx pgx.Tx) error { return apply(ctx, tx, missing, name) })
	if err != nil {
		return explain(err, pool, name)
	}
	return nil
}

// apply runs the missing migrations, unless another process has already applied them. A statement without
// arguments is a single message, which works through poolers.
func apply(ctx context.Context, tx pgx.Tx, missing []migration, name string) error {
	if _, err := tx.Exec(ctx, openSQL(name)); err != nil {
		return err
	}
	for _, m := range missing {
		if _, err := tx.Exec(ctx, migrationSQL(m, name)); err != nil {
			return fmt.Errorf("migration %d, %s: %w", m.version, m.name, err)
		}
	}
	return nil
}

func readApplied(ctx context.Context, pool *pgxpool.Pool, name string) (map[int]string, error) {
	rows, err := pool.Query(ctx, "SELECT version, name FROM "+Quote(name)+".migration", pgx.QueryExecModeExec)
	if err != nil {
		return nil, err
	}
	there := make(map[int]string)
	var version int
	var text string
	_, err = pgx.ForEachRow(rows, []any{&version, &text}, func() error {
		there[version] = text
		return nil
	})
	if code := sqlState(err); code == undefinedTable || code == invalidSchemaName {
		return nil, nil
	}
	return there, err
}

func findMissing(there map[int]string) (missing []migration, err error) {
	for _, m := range migrations {
		switch name, ok := there[m.version]; {
		case !ok:
			missing = append(missing, m)
		case name != m.name:
			return nil, fmt.Errorf("migration %d is %q, not %q: the schema belongs to another program", m.version, name, m.name)
		}
	}
	return missing, nil
}

// explain adds the schema to err, and a remedy for missing privileges.
func explain(err error, pool *pgxpool.Pool, name string) error {
	refusal, refused := errors.AsType[*pgconn.PgError](err)
	if refused && refusal.Where != "" {
		where, _, _ := strings.Cut(refusal.Where, "\n")
		err = fmt.Errorf("%w: %.200s", err, where)
	}
	if !refused || refusal.Code != insufficientPrivilege {
		return fmt.Errorf("schema %q: %w", name, err)
	}
	c := pool.Config().ConnConfig
	schema, user := Quote(name), Quote(c.User)
	return fmt.Errorf("schema %q: %w: the user lacks privileges: as an admin, run CREATE SCHEMA %s AUTHORIZATION %s,"+
		" or create the tables as an admin and run GRANT USAGE ON SCHEMA %s TO %s; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO %s;"+
		" doc/postgres.md, Users, has the minimal list of privileges",
		name, err, schema, user, schema, user, schema, user)
}

func sqlState(err error) string {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refusal.Code
	}
	return ""
}
