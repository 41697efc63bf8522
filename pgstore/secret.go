// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete/pgstore/internal/schema"
)

const (
	secretSQL = `SELECT secret FROM {schema}.secret WHERE prefix OPERATOR(pg_catalog.=) $1::pg_catalog.bytea`

	makeSecretSQL = `INSERT INTO {schema}.secret (prefix, secret) VALUES ($1::pg_catalog.bytea, $2::pg_catalog.text) ON CONFLICT (prefix) DO NOTHING`
)

// DeriveKey implements [store.KeyDeriver]: the key is the same in each process that uses
// the same schema and prefix. It derives the key from a secret in the table secret, and
// makes that secret if there is none. The table is logged: the secret survives a crash,
// and is on replicas and in backups. No transaction in ctx has a part in it.
//
// The secret lies beside the hashes: a reader of the whole schema can find the client of
// a bucket by trying values. A policy.Options.HashKey does not have this weakness.
func (s *Store) DeriveKey(ctx context.Context, purpose string) ([sha256.Size]byte, error) {
	secret, err := s.secret(ctx)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("pgstore: derive key: %w", err)
	}
	return sha256.Sum256([]byte("mete " + purpose + "\x00" + secret)), nil
}

func (s *Store) secret(ctx context.Context) (secret string, err error) {
	name, prefix := s.config.Schema, []byte(s.config.Prefix)
	read := func() error {
		return s.pool.QueryRow(ctx, schema.In(secretSQL, name), pgx.QueryExecModeExec, prefix).Scan(&secret)
	}
	if err := read(); !errors.Is(err, pgx.ErrNoRows) {
		return secret, err
	}
	// Of several that make one at once, all read the first.
	_, err = s.pool.Exec(ctx, schema.In(makeSecretSQL, name), pgx.QueryExecModeExec, prefix, rand.Text()+rand.Text())
	if err != nil {
		return "", err
	}
	return secret, read()
}
