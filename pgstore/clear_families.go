// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete/store"
)

const (
	familyRows = 2_000

	// lastMark precedes the last key in the text of a position.
	lastMark = "k"
)

var _ store.Clearer = (*Store)(nil)

// ClearFamilies implements [store.Clearer]. A call reads some thousand keys in ascending order, and deletes the
// rows of the families in one statement. Only keys with a hash tag mix with other families; other keys of a
// family are contiguous.
//
// A call waits for rows that a caller's transaction has locked, until the store's timeout.
func (s *Store) ClearFamilies(ctx context.Context, families []string, from string) (removed int64, next string, err error) {
	starts := []string{"{"} // of the ranges of keys to read
	for _, family := range families {
		if family != "" {
			starts = append(starts, family)
		}
	}
	slices.Sort(starts)
	last, err := hex.DecodeString(strings.TrimPrefix(from, lastMark))
	if err != nil || from != "" && !strings.HasPrefix(from, lastMark) {
		return 0, "", fmt.Errorf("pgstore: clear families: from %q: %w", from, store.ErrFrom)
	}
	for _, start := range starts {
		end := prefixEnd(s.config.Prefix + start)
		if end != nil && slices.Compare(last, end) >= 0 {
			continue
		}
		n, through, err := s.clearRange(ctx, families, []byte(s.config.Prefix+start), end, last)
		if err != nil {
			return removed, "", fmt.Errorf("pgstore: clear families: %w", err)
		}
		if removed += n; through != nil {
			return removed, lastMark + hex.EncodeToString(through), nil
		}
	}
	return removed, "", nil
}

// clearRange deletes rows of the families between two keys, after last. It returns the last key that it read, or
// nil if it read the whole range.
func (s *Store) clearRange(ctx context.Context, families []string, begin, end, last []byte) (removed int64, through []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	table := s.bucketTable()
	rows, err := s.pool.Query(ctx, fmt.Sprintf(`SELECT key FROM %s WHERE key OPERATOR(pg_catalog.>=) $1
		AND ($2::pg_catalog.bytea IS NULL OR key OPERATOR(pg_catalog.<) $2) AND key OPERATOR(pg_catalog.>) $3
		ORDER BY key LIMIT $4`, table), pgx.QueryExecModeExec, begin, end, last, familyRows)
	if err != nil {
		return 0, nil, err
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return 0, nil, err
	}
	if len(keys) == familyRows {
		through = keys[len(keys)-1]
	}
	keys = slices.DeleteFunc(keys, func(key []byte) bool {
		return !slices.Contains(families, store.Family(string(key[len(s.config.Prefix):])))
	})
	if len(keys) == 0 {
		return 0, through, nil
	}
	// Takes lock rows in ascending order of their keys, too.
	tag, err := s.pool.Exec(ctx, fmt.Sprintf(`DELETE FROM %[1]s WHERE key OPERATOR(pg_catalog.=) ANY (ARRAY(
		SELECT key FROM %[1]s WHERE key OPERATOR(pg_catalog.=) ANY ($1) ORDER BY key FOR UPDATE))`, table), pgx.QueryExecModeExec, keys)
	return tag.RowsAffected(), through, err
}

func (s *Store) bucketTable() string {
	table := pgx.Identifier{s.config.Schema, "bucket"}
	if s.config.Durable {
		table[1] = "bucket_durable"
	}
	return table.Sanitize()
}
