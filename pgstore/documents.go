// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete/pgstore/internal/schema"
	"github.com/metehq/mete/store"
)

const (
	documentSQL = `SELECT revision, CASE WHEN revision OPERATOR(pg_catalog.<>) $3::pg_catalog.int8 THEN data END FROM {schema}.document
		WHERE prefix OPERATOR(pg_catalog.=) $1::pg_catalog.bytea AND name OPERATOR(pg_catalog.=) $2::pg_catalog.text`

	// A revision is the time in microseconds. A document that was lost and is created again thus gets a different
	// revision.
	makeDocumentSQL = `INSERT INTO {schema}.document (prefix, name, revision, data)
		VALUES ($1::pg_catalog.bytea, $2::pg_catalog.text, {schema}.microseconds(), $3::pg_catalog.bytea)
		ON CONFLICT (prefix, name) DO NOTHING RETURNING revision`

	setDocumentSQL = `UPDATE {schema}.document
		SET revision = greatest(revision OPERATOR(pg_catalog.+) 1, {schema}.microseconds()), data = $3::pg_catalog.bytea, changed_at = pg_catalog.clock_timestamp()
		WHERE prefix OPERATOR(pg_catalog.=) $1::pg_catalog.bytea AND name OPERATOR(pg_catalog.=) $2::pg_catalog.text
			AND revision OPERATOR(pg_catalog.=) $4::pg_catalog.int8 RETURNING revision`
)

var _ store.Documents = (*Store)(nil)

// Document implements [store.Documents]. It ignores a transaction in ctx.
func (s *Store) Document(ctx context.Context, name string, known int64) (data []byte, revision int64, err error) {
	if err := store.CheckDocument(name, nil); err != nil {
		return nil, 0, fmt.Errorf("pgstore: document: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	row := s.pool.QueryRow(ctx, schema.Qualify(documentSQL, s.config.Schema), pgx.QueryExecModeExec, []byte(s.config.Prefix), name, known)
	switch err := row.Scan(&revision, &data); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, 0, nil
	case err != nil:
		return nil, 0, withOp(err, "document")
	}
	return data, revision, nil
}

// SetDocument implements [store.Documents]. The table is logged: a document survives a crash, and is replicated
// and backed up. SetDocument ignores a transaction in ctx.
func (s *Store) SetDocument(ctx context.Context, name string, data []byte, revision int64) (next int64, err error) {
	if err := store.CheckDocument(name, data); err != nil {
		return 0, fmt.Errorf("pgstore: set document: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	args := []any{pgx.QueryExecModeExec, []byte(s.config.Prefix), name, append([]byte{}, data...)}
	sql := makeDocumentSQL
	if revision != 0 {
		sql, args = setDocumentSQL, append(args, revision)
	}
	err = s.pool.QueryRow(ctx, schema.Qualify(sql, s.config.Schema), args...).Scan(&next)
	switch {
	case errors.Is(err, pgx.ErrNoRows), isSerialization(err):
		return 0, fmt.Errorf("pgstore: set document: %w", store.ErrRevision)
	case err != nil:
		return 0, withOp(err, "set document")
	}
	return next, nil
}
