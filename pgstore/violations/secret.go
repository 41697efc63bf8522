// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DeriveKey returns a [Config.Key] that is the same for all who use the schema,
// which is "mete" if empty: it is derived from the secret that lies there,
// in the table of the same name, and is made where there is none. Who can read that
// can try out whose a hash is; a key from elsewhere has not that fault.
func DeriveKey(ctx context.Context, pool *pgxpool.Pool, schema string) ([]byte, error) {
	if schema == "" {
		schema = defaultSchema
	}
	table := pgx.Identifier{schema, "secret"}.Sanitize()
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	var secret string
	read := func() error {
		return pool.QueryRow(ctx, "SELECT secret FROM "+table+" WHERE prefix OPERATOR(pg_catalog.=) ''", pgx.QueryExecModeExec).Scan(&secret)
	}
	err := read()
	if errors.Is(err, pgx.ErrNoRows) { // of several that make one at once, all read the first
		_, err = pool.Exec(ctx, "INSERT INTO "+table+" (prefix, secret) VALUES ('', $1::pg_catalog.text) ON CONFLICT (prefix) DO NOTHING",
			pgx.QueryExecModeExec, rand.Text()+rand.Text())
		if err == nil {
			err = read()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("violations: derive key: %w", err)
	}
	key := sha256.Sum256([]byte("mete hashes in violations\x00" + secret))
	return key[:], nil
}
