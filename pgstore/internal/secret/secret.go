// SPDX-License-Identifier: Apache-2.0

// Package secret keeps the secret that the processes of a PostgreSQL store share.
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

// Derive returns the key for a purpose that is the same for all processes with the same
// schema and prefix. It derives the key from the secret in the table secret, and makes that
// secret if there is none.
func Derive(ctx context.Context, pool *pgxpool.Pool, schemaName, prefix, purpose string) (key [sha256.Size]byte, err error) {
	var secret string
	read := func() error {
		return pool.QueryRow(ctx, schema.In(readSQL, schemaName), pgx.QueryExecModeExec, []byte(prefix)).Scan(&secret)
	}
	err = read()
	if errors.Is(err, pgx.ErrNoRows) { // of several that make one at once, all read the first
		_, err = pool.Exec(ctx, schema.In(makeSQL, schemaName), pgx.QueryExecModeExec, []byte(prefix), rand.Text()+rand.Text())
		if err == nil {
			err = read()
		}
	}
	if err != nil {
		return key, err
	}
	return sharedkey.Derive(purpose, secret), nil
}
