// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/pgstore/internal/secret"
)

// DeriveKey returns a [Config.Key] that is the same for all programs that use the schema; empty is "mete". It is
// derived from the secret in the table secret, which DeriveKey creates if it is missing. A reader of that table
// can find the client of a hash by trying values. A key from another source avoids this.
func DeriveKey(ctx context.Context, pool *pgxpool.Pool, schema string) ([]byte, error) {
	if schema == "" {
		schema = defaultSchema
	}
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	key, err := secret.Derive(ctx, pool, schema, "", "hashes in violations")
	if err != nil {
		return nil, fmt.Errorf("violations: derive key: %w", err)
	}
	return key[:], nil
}
