// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const clearBatch = 10_000

// Clear deletes all buckets of the store's prefix, so that they are full: after a test or replay, or for a fresh
// start. It deletes in batches. Buckets that are used during the call may remain. So may any after an error.
func (s *Store) Clear(ctx context.Context) error {
	sql := fmt.Sprintf(`DELETE FROM %[1]s WHERE key OPERATOR(pg_catalog.=) ANY (ARRAY(
		SELECT key FROM %[1]s WHERE key OPERATOR(pg_catalog.>=) $1 AND ($2::pg_catalog.bytea IS NULL OR key OPERATOR(pg_catalog.<) $2)
		ORDER BY key LIMIT $3 FOR UPDATE))`, s.bucketTable())
	for {
		tag, err := s.pool.Exec(ctx, sql, pgx.QueryExecModeExec, []byte(s.config.Prefix), prefixEnd(s.config.Prefix), clearBatch)
		if err != nil {
			return fmt.Errorf("pgstore: clear: %w", err)
		}
		if tag.RowsAffected() < clearBatch {
			return nil
		}
	}
}

// prefixEnd returns the first key after all keys with this prefix, or nil if there is none.
func prefixEnd(prefix string) []byte {
	next := []byte(prefix)
	for i := len(next) - 1; i >= 0; i-- {
		if next[i] < 0xff {
			next[i]++
			return next[:i+1]
		}
	}
	return nil
}
