// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete"
	"github.com/metehq/mete/pgstore/internal/schema"
)

const (
	documentSQL = `SELECT revision, CASE WHEN revision <> $3::bigint THEN data END FROM {schema}.document WHERE prefix = $1::bytea AND name = $2::text`

	// A revision is the time in microseconds, so that a document that was lost and
	// is made again has another one.
	makeDocumentSQL = `INSERT INTO {schema}.document (prefix, name, revision, data)
		VALUES ($1::bytea, $2::text, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $3::bytea)
		ON CONFLICT (prefix, name) DO NOTHING RETURNING revision`

	setDocumentSQL = `UPDATE {schema}.document
		SET revision = greatest(revision + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), data = $3::bytea, changed_at = clock_timestamp()
		WHERE prefix = $1::bytea AND name = $2::text AND revision = $4::bigint RETURNING revision`
)

var _ mete.Documents = (*Store)(nil)

// Document implements [mete.Documents]. It is not a part of a transaction that ctx
// has.
func (s *Store) Document(ctx context.Context, name string, known int64) (data []byte, revision int64, err error) {
	if err := mete.CheckDocument(name, nil); err != nil {
		return nil, 0, fmt.Errorf("pgstore: document: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	row := s.pool.QueryRow(ctx, schema.In(documentSQL, s.config.Schema), pgx.QueryExecModeExec, []byte(s.config.Prefix), name, known)
	switch err := row.Scan(&revision, &data); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, 0, nil
	case err != nil:
		return nil, 0, named(err, "document")
	}
	return data, revision, nil
}

// SetDocument implements [mete.Documents]. The table is logged: a document survives
// a crash, and is there on replicas and in backups. It is not a part of a
// transaction that ctx has.
func (s *Store) SetDocument(ctx context.Context, name string, data []byte, revision int64) (next int64, err error) {
	if err := mete.CheckDocument(name, data); err != nil {
		return 0, fmt.Errorf("pgstore: set document: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	args := []any{pgx.QueryExecModeExec, []byte(s.config.Prefix), name, append([]byte{}, data...)}
	sql := makeDocumentSQL
	if revision != 0 {
		sql, args = setDocumentSQL, append(args, revision)
	}
	err = s.pool.QueryRow(ctx, schema.In(sql, s.config.Schema), args...).Scan(&next)
	switch {
	case errors.Is(err, pgx.ErrNoRows), isSerialization(err):
		return 0, fmt.Errorf("pgstore: set document: %w", mete.ErrRevision)
	case err != nil:
		return 0, named(err, "set document")
	}
	return next, nil
}
