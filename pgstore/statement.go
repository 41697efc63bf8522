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

// A statement is a call of a function in pgstore/internal/schema/migrations.
type statement struct {
	name string // of the prepared statement, derived from the text; empty: not prepared
	sql  string
	oids []uint32 // parameter types
}

type statements struct {
	takeAlone, takeOne, takeMany, settleAlone, takeAndSettle, take, reset, locked, sweep, ping statement
	hold, settle, sweepHolds                                                                   statement
}

//go:embed take_alone.sql
var takeAlone string

//go:embed settle_alone.sql
var settleAlone string

//go:embed locked.sql
var locked string

// newStatements returns the statements for a bucket table. If joined is set, they run in a caller's transaction
// and change no settings, because a setting would outlast them.
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
	prepared := func(sql string, oids []uint32) statement {
		digest := sha256.Sum256([]byte(sql))
		return statement{"mete_" + hex.EncodeToString(digest[:12]), sql, oids}
	}
	call := func(name string, oids ...uint32) statement {
		places := make([]string, len(oids))
		for i := range places {
			places[i] = fmt.Sprintf("$%d", i+1)
		}
		return prepared(fmt.Sprintf("SELECT * FROM %s.%s_%s(%s)", quoted, table, name, strings.Join(places, ", ")), oids)
	}
	// callWithTimeout is call with a further parameter, the lock timeout. The last argument, a flag, depends on
	// it, so that PostgreSQL sets the timeout first.
	callWithTimeout := func(name string, oids ...uint32) statement {
		if joined {
			return call(name, oids...)
		}
		places := make([]string, len(oids))
		for i := range places {
			places[i] = fmt.Sprintf("$%d", i+1)
		}
		return prepared(fmt.Sprintf("SELECT f.* FROM pg_catalog.set_config('lock_timeout', $%d, true) AS w, LATERAL %s.%s_%s(%s AND w IS NOT NULL) AS f",
			len(oids)+1, quoted, table, name, strings.Join(places, ", ")), append(oids, text))
	}
	names := strings.NewReplacer("{table}", quoted+"."+table, "{schema}", quoted)
	return statements{
		takeAlone:     prepared(names.Replace(takeAlone), []uint32{key, number, number, number, text, text}),
		settleAlone:   prepared(names.Replace(settleAlone), []uint32{key, number, number, number, number, number, text, number, number, text}),
		takeOne:       callWithTimeout("take_one", number, key, text, number, number, number, number, flag),
		takeMany:      callWithTimeout("take_many", number, keys, numbers, numbers, texts, numbers, numbers, numbers, flag),
		takeAndSettle: callWithTimeout("take_and_settle", number, numbers, keys, numbers, numbers, numbers, numbers, numbers, numbers, texts, numbers, numbers, flag),
		take:          callWithTimeout("take", number, keys, texts, numbers, numbers, keys, texts, numbers, flag),
		reset:         call("reset", keys),
		locked:        statement{sql: names.Replace(locked), oids: []uint32{keys}},
		ping:          prepared("SELECT 1 FROM "+quoted+"."+table+" LIMIT 0", nil),
		sweep:         call("sweep", pgtype.Float8OID, number, pgtype.Int4OID),

		hold:       call("hold", number, keys, texts, numbers, numbers, key, text, number, flag, number, numbers, texts, numbers),
		settle:     call("settle", number, key, numbers, number, number, texts, numbers),
		sweepHolds: call("sweep_holds", pgtype.Int4OID),
	}
}

var binaryFormat = []int16{pgtype.BinaryFormatCode}

// query runs st on conn and calls each with every row. It stops using prepared statements once one is missing or
// belongs to another client: poolers switch server connections between transactions. It closes a connection to a
// server that rejects writes, so that the next connection can reach another server.
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
	return readRows(conn.PgConn().ExecParams(ctx, st.sql, params, st.oids, binaryFormat, binaryFormat), each)
}

func (s *Store) queryPrepared(ctx context.Context, conn *pgx.Conn, st *statement, params [][]byte, each func(values [][]byte)) error {
	prepared, err := conn.Prepare(ctx, st.name, st.sql) // once per connection
	if err != nil {
		return newRefusal(err)
	}
	return readRows(conn.PgConn().ExecStatement(ctx, prepared, params, binaryFormat, binaryFormat), each)
}

// queryCommitted is query in a transaction at the level read committed, in one round trip. At higher levels,
// PostgreSQL rolls back statements that meet a concurrently changed bucket.
func (s *Store) queryCommitted(ctx context.Context, conn *pgx.Conn, st *statement, params [][]byte, each func(values [][]byte)) error {
	var b pgconn.Batch
	b.ExecParams("BEGIN ISOLATION LEVEL READ COMMITTED", nil, nil, nil, nil)
	b.ExecParams(st.sql, params, st.oids, binaryFormat, binaryFormat)
	b.ExecParams("COMMIT", nil, nil, nil, nil)
	results := conn.PgConn().ExecBatch(ctx, &b)
	for results.NextResult() {
		for rows := results.ResultReader(); rows.NextRow(); { // only the statement returns rows
			each(rows.Values())
		}
	}
	err := results.Close()
	const failed = 'E'
	if err != nil && !conn.IsClosed() && conn.PgConn().TxStatus() == failed {
		_, _ = conn.PgConn().Exec(ctx, "ROLLBACK").ReadAll() // else the pool discards the connection
	}
	return err
}

func readRows(rows *pgconn.ResultReader, each func(values [][]byte)) error {
	for rows.NextRow() {
		each(rows.Values())
	}
	_, err := rows.Close()
	return err
}

// isUnprepared reports whether a prepared statement is missing on this server connection, or exists already.
func isUnprepared(err error) bool {
	const invalidName, duplicate = "26000", "42P05"
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refusal.Code == invalidName || refusal.Code == duplicate)
}
