// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/metehq/mete/pgstore/internal/secret"
)

// DeriveKey implements [store.KeyDeriver]: the key is the same in every process that uses the same schema and
// prefix. It is derived from a secret in the table secret. DeriveKey creates the secret if it is missing. The
// table is logged: the secret survives a crash, and is replicated and backed up. DeriveKey ignores a transaction
// in ctx.
//
// The secret is stored alongside the hashes, so a reader of the whole schema can find the client of a bucket by
// trying values. A policy.Options.HashKey does not have this weakness.
func (s *Store) DeriveKey(ctx context.Context, purpose string) ([sha256.Size]byte, error) {
	key, err := secret.Derive(ctx, s.pool, s.config.Schema, s.config.Prefix, purpose)
	if err != nil {
		return key, fmt.Errorf("pgstore: derive key: %w", err)
	}
	return key, nil
}
