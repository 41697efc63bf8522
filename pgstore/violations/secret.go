// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/pgstore/internal/secret"
)

// DeriveKey returns a [Config.Key] that is the same for all who use the schema,
// which is "mete" if empty: it is derived from the secret that lies there,
// in the table of the same name, and is made where there is none. Who can read that
// can try out whose a hash is; a key from elsewhere has not that fault.
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
