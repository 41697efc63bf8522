// SPDX-License-Identifier: Apache-2.0

// Package secret keeps the secret that all processes with one PostgreSQL store share.
package secret

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/internal/sharedkey"
	"github.com/metehq/mete/pgstore/internal/schema"
)

const (
	readSQL = `SELECT secret FROM {schema}.secret WHERE prefix OPERATOR(pg_catalog.=) $1::pg_catalog.bytea`

	makeSQL = `INSERT INTO {schema}.secret (prefix, secret) VALUES ($1::pg_catalog.bytea, $2::pg_catalog.text) ON CONFLICT (prefix) DO NOTHING`
)

// Derive returns a key for a purpose. The key is the same for all processes with the same schema and prefix. It
// is derived from the secret in the table secret. Derive creates the secret if it is missing.
func Derive(ctx context.Context, pool *pgxpool.Pool, schemaName, prefix, purpose string) (key [sha256.Size]byte, err error) {
	var secret string
	read := func() error {
		return pool.QueryRow(ctx, schema.Qualify(readSQL, schemaName), pgx.QueryExecModeExec, []byte(prefix)).Scan(&secret)
	}
	err = read()
	if errors.Is(err, pgx.ErrNoRows) { // of concurrent inserts, the first one wins
		_, err = pool.Exec(ctx, schema.Qualify(makeSQL, schemaName), pgx.QueryExecModeExec, []byte(prefix), rand.Text()+rand.Text())
		if err == nil {
			err = read()
		}
	}
	if err != nil {
		return key, err
	}
	return sharedkey.Derive(purpose, secret), nil
}
