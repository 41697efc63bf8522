// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete"
)

const storeName = "pgstore"

var errGone = errors.New("the connection was lost before the call was sent")

// A refusal is an error that occurred before the statement was sent.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func newRefusal(err error) error { return refusal{err} }

// newStoreError determines whether a failed call may have spent tokens. PostgreSQL rolls back a statement that
// it rejects with an ERROR. If it ends the connection (FATAL), or the connection is lost, the statement may have
// run, unless it was not sent.
func newStoreError(err error) *mete.StoreError {
	var known *mete.StoreError
	if errors.As(err, &known) {
		return known
	}
	_, before := errors.AsType[refusal](err)
	_, connect := errors.AsType[*pgconn.ConnectError](err)
	if before || connect || pgconn.SafeToRetry(err) || isRefused(err) {
		return newNotSpent(addRemedy(err))
	}
	return newMaybeSpent(err)
}

// isRefused reports whether err is an ERROR of PostgreSQL in any language. Connection errors do not count: some
// poolers report them for a server that they lost during a statement.
func isRefused(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && cmp.Or(pgErr.SeverityUnlocalized, pgErr.Severity) == "ERROR" && !strings.HasPrefix(pgErr.Code, "08")
}

func isReadOnly(err error) bool {
	const readOnly = "25006"
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == readOnly
}

func addRemedy(err error) error {
	const noFunction, noTable, noSchema = "42883", "42P01", "3F000"
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && (pgErr.Code == noFunction || pgErr.Code == noTable || pgErr.Code == noSchema) {
		return &migrateError{err}
	}
	if isUnreadable(err) {
		return fmt.Errorf("%w: reset the key, or use a version of mete that supports the row", err)
	}
	return err
}

type migrateError struct{ error }

func (e *migrateError) Error() string {
	return e.error.Error() + ": the schema is missing: call pgstore.Migrate"
}
func (e *migrateError) Unwrap() error { return e.error }

// isUndone reports whether PostgreSQL rolled back a statement because of a concurrent one. It may be retried.
func isUndone(err error) bool {
	const deadlock = "40P01"
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == deadlock || isSerialization(err)
}

func isSerialization(err error) bool {
	const serialization = "40001"
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == serialization
}

func withOp(err error, op string) error {
	e := newStoreError(err)
	return &mete.StoreError{Op: op, Store: storeName, Spent: e.Spent, Err: e.Err}
}
