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

// timeout is for one call of Migrate, which may wait for many others.
const timeout = time.Minute

// What PostgreSQL says: https://www.postgresql.org/docs/current/errcodes-appendix.html.
const (
	insufficientPrivilege = "42501"
	undefinedTable        = "42P01"
	invalidSchemaName     = "3F000"
)

// Migrate makes the schema of this name, if there is none, and applies what is
// missing in it. Any number of processes may do so at once. Where nothing is
// missing it is one query. What a later version of this program has added stays.
// It takes no longer than a minute.
func Migrate(ctx context.Context, pool *pgxpool.Pool, name string) error {
	if err := Check(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	there, err := applied(ctx, pool, name)
	if err != nil {
		return explained(err, pool, name)
	}
	missing, err := lacking(there)
	if err != nil {
		return fmt.Errorf("schema %q: %w", name, err)
	}
	if len(missing) == 0 {
		return nil
	}
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}
	err = pgx.BeginTxFunc(ctx, pool, options, func(tx pgx.Tx) error { return apply(ctx, tx, missing, name) })
	if err != nil {
		return explained(err, pool, name)
	}
	return nil
}

// apply runs what is missing, unless another has meanwhile. A statement without
// arguments is one message, which poolers pass on as it is.
func apply(ctx context.Context, tx pgx.Tx, missing []migration, name string) error {
	if _, err := tx.Exec(ctx, begun(name)); err != nil {
		return err
	}
	for _, m := range missing {
		if _, err := tx.Exec(ctx, applying(m, name)); err != nil {
			return fmt.Errorf("migration %d, %s: %w", m.version, m.name, err)
		}
	}
	return nil
}

// applied are the names of the migrations that a schema has, by their numbers.
func applied(ctx context.Context, pool *pgxpool.Pool, name string) (map[int]string, error) {
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
	if code := codeOf(err); code == undefinedTable || code == invalidSchemaName {
		return nil, nil
	}
	return there, err
}

// lacking are the migrations that are not there.
func lacking(there map[int]string) (missing []migration, err error) {
	for _, m := range migrations {
		switch name, ok := there[m.version]; {
		case !ok:
			missing = append(missing, m)
		case name != m.name:
			return nil, fmt.Errorf("its migration %d is %q, and not %q: it is another program's", m.version, name, m.name)
		}
	}
	return missing, nil
}

// explained is err with where it came from, and what to do if the user may not.
func explained(err error, pool *pgxpool.Pool, name string) error {
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
	return fmt.Errorf("schema %q: %w: the user needs rights: an administrator runs CREATE SCHEMA %s AUTHORIZATION %s,"+
		" or makes everything and runs GRANT USAGE ON SCHEMA %s TO %s; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO %s;"+
		" doc/postgres.md, Users, has the shorter list of what is needed",
		name, err, schema, user, schema, user, schema, user)
}

func codeOf(err error) string {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refusal.Code
	}
	return ""
}
