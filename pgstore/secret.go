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
	secretSQL = `SELECT secret FROM {schema}.secret WHERE prefix = $1::bytea`

	makeSecretSQL = `INSERT INTO {schema}.secret (prefix, secret) VALUES ($1::bytea, $2::text) ON CONFLICT (prefix) DO NOTHING`
)

// DeriveKey returns a key for a purpose that is the same for all nodes with the
// same schema and prefix: it is derived from a secret in the table secret, which is
// made where there is none. Who hashes parts of bucket keys, like
// policy.Options.HashKey, shares the buckets with the others that way. The table is
// logged: the secret survives a crash, and is there on replicas and in backups.
//
// It lies beside the hashes: whoever can read the whole schema can try out whose a
// bucket is. A secret from elsewhere has not that fault.
func (n *Node) DeriveKey(ctx context.Context, purpose string) ([sha256.Size]byte, error) {
	secret, err := n.secret(ctx)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("pgstore: derive key: %w", err)
	}
	return sha256.Sum256([]byte("mete " + purpose + "\x00" + secret)), nil
}

func (n *Node) secret(ctx context.Context) (secret string, err error) {
	name, prefix := n.config.Schema, []byte(n.config.Prefix)
	read := func() error {
		return n.pool.QueryRow(ctx, schema.In(secretSQL, name), pgx.QueryExecModeExec, prefix).Scan(&secret)
	}
	if err := read(); !errors.Is(err, pgx.ErrNoRows) {
		return secret, err
	}
	// Of several that make one at once, all read the first.
	_, err = n.pool.Exec(ctx, schema.In(makeSecretSQL, name), pgx.QueryExecModeExec, prefix, rand.Text()+rand.Text())
	if err != nil {
		return "", err
	}
	return secret, read()
}
