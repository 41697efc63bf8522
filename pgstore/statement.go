// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"crypto/sha256"
	_ "embed" // of a statement
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// A statement is a call of one of the functions in the schema, which are in
// pgstore/internal/schema/migrations.
type statement struct {
	name string // of the prepared statement: one text has one name; empty where it is not prepared
	sql  string
	oids []uint32 // of its parameters
}

// statements are those of one table of buckets.
type statements struct{ takeAlone, takeOne, takeMany, take, reset, locked, sweep, ping statement }

//go:embed take_alone.sql
var takeAlone string

//go:embed locked.sql
var locked string

// newStatements returns them, as they are in a transaction of a caller's if joined:
// there nothing is set, as that would last.
func newStatements(schema string, durable, joined bool) statements {
	table := "bucket"
	if durable {
		table = "bucket_durable"
	}
	const (
		number, numbers = pgtype.Int8OID, pgtype.Int8ArrayOID
		key, keys       = pgtype.ByteaOID, pgtype.ByteaArrayOID
		text, texts     = pgtype.TextOID, pgtype.TextArrayOID
		flag            = pgtype.BoolOID
	)
	quoted := pgx.Identifier{schema}.Sanitize()
	named := func(sql string, oids []uint32) statement {
		digest := sha256.Sum256([]byte(sql))
		return statement{"mete_" + hex.EncodeToString(digest[:12]), sql, oids}
	}
	f := func(name string, oids ...uint32) statement {
		places := make([]string, len(oids))
		for i := range places {
			places[i] = fmt.Sprintf("$%d", i+1)
		}
		return named(fmt.Sprintf("SELECT * FROM %s.%s_%s(%s)", quoted, table, name, strings.Join(places, ", ")), oids)
	}
	// patient is f with a parameter more, that says how long it waits for a lock. It
	// refers to it in its last one, a flag, so that it is set before.
	patient := func(name string, oids ...uint32) statement {
		if joined {
			return f(name, oids...)
		}
		places := make([]string, len(oids))
		for i := range places {
			places[i] = fmt.Sprintf("$%d", i+1)
		}
		return named(fmt.Sprintf("SELECT f.* FROM pg_catalog.set_config('lock_timeout', $%d, true) AS w, LATERAL %s.%s_%s(%s AND w IS NOT NULL) AS f",
			len(oids)+1, quoted, table, name, strings.Join(places, ", ")), append(oids, text))
	}
	names := strings.NewReplacer("{table}", quoted+"."+table, "{schema}", quoted)
	return statements{
		takeAlone: named(names.Replace(takeAlone), []uint32{key, number, number, number, text, text}),
		takeOne:   patient("take_one", number, key, text, number, number, number, number, flag),
		takeMany:  patient("take_many", number, keys, numbers, numbers, texts, numbers, numbers, numbers, flag),
		take:      patient("take", number, keys, texts, numbers, numbers, keys, flag),
		reset:     f("reset", keys),
		locked:    statement{sql: names.Replace(locked), oids: []uint32{keys}},
		ping:      named("SELECT 1 FROM "+quoted+"."+table+" LIMIT 0", nil),
		sweep:     f("sweep", pgtype.Float8OID, number, pgtype.Int4OID),
	}
}

var binaryFormat = []int16{pgtype.BinaryFormatCode}

// query runs st on conn and calls each with every row. Prepared statements belong
// to a connection, and behind a pooler that hands out others for every transaction
// they are not there, or are another client's: then, and for the rest of the store's
// life, they are not used. A connection to a server that takes no writes is closed:
// the next one may be to another.
func (s *Store) query(ctx context.Context, conn *pgx.Conn, st *statement, params [][]byte, each func(values [][]byte)) error {
	err := s.queryAny(ctx, conn, st, params, each)
	if !s.joined && isReadOnly(err) {
		_ = conn.Close(ctx)
	}
	return err
}

func (s *Store) queryAny(ctx context.Context, conn *pgx.Conn, st *statement, params [][]byte, each func(values [][]byte)) error {
	if s.isolated.Load() {
		return s.queryCommitted(ctx, conn, st, params, each)
	}
	if st.name != "" && !s.unprepared.Load() {
		err := s.queryPrepared(ctx, conn, st, params, each)
		if !isUnprepared(err) {
			return err
		}
		s.unprepared.Store(true)
	}
	return read(conn.PgConn().ExecParams(ctx, st.sql, params, st.oids, binaryFormat, binaryFormat), each)
}

func (s *Store) queryPrepared(ctx context.Context, conn *pgx.Conn, st *statement, params [][]byte, each func(values [][]byte)) error {
	prepared, err := conn.Prepare(ctx, st.name, st.sql) // once for a connection
	if err != nil {
		return refusedBefore(err)
	}
	return read(conn.PgConn().ExecStatement(ctx, prepared, params, binaryFormat, binaryFormat), each)
}

// queryCommitted is query in a transaction at the level read committed, in one round
// trip. Above it PostgreSQL undoes what meets a bucket that has changed since it began.
func (s *Store) queryCommitted(ctx context.Context, conn *pgx.Conn, st *statement, params [][]byte, each func(values [][]byte)) error {
	var b pgconn.Batch
	b.ExecParams("BEGIN ISOLATION LEVEL READ COMMITTED", nil, nil, nil, nil)
	b.ExecParams(st.sql, params, st.oids, binaryFormat, binaryFormat)
	b.ExecParams("COMMIT", nil, nil, nil, nil)
	results := conn.PgConn().ExecBatch(ctx, &b)
	for results.NextResult() {
		for rows := results.ResultReader(); rows.NextRow(); { // none but the statement has any
			each(rows.Values())
		}
	}
	err := results.Close()
	const failed = 'E'
	if err != nil && !conn.IsClosed() && conn.PgConn().TxStatus() == failed {
		_, _ = conn.PgConn().Exec(ctx, "ROLLBACK").ReadAll() // else the connection is not used again
	}
	return err
}

func read(rows *pgconn.ResultReader, each func(values [][]byte)) error {
	for rows.NextRow() {
		each(rows.Values())
	}
	_, err := rows.Close()
	return err
}

// isUnprepared says whether an error is that of a prepared statement which another
// server connection has, or which this one has already.
func isUnprepared(err error) bool {
	const invalidName, duplicate = "26000", "42P05"
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refusal.Code == invalidName || refusal.Code == duplicate)
}
