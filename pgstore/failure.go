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

// errGone is about what was to be asked after something that failed.
var errGone = errors.New("the connection was lost before it was asked")

// A refusal is an error of something that came before the statement.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func refusedBefore(err error) error { return refusal{err} }

// storeError says whether a failed call may have spent something. What PostgreSQL
// refuses with an ERROR it has undone. When it ends a connection (FATAL), or the
// connection is lost, nobody knows, unless nothing had been sent.
func storeError(err error) *mete.StoreError {
	var known *mete.StoreError
	if errors.As(err, &known) {
		return known
	}
	_, before := errors.AsType[refusal](err)
	_, connect := errors.AsType[*pgconn.ConnectError](err)
	if before || connect || pgconn.SafeToRetry(err) || isRefused(err) {
		return notSpent(explained(err))
	}
	return maybeSpent(err)
}

// isRefused says whether an error is an ERROR of PostgreSQL, in whatever language it
// speaks. Those of connections are a pooler's: some say so of a server that they have
// lost in the midst of a statement.
func isRefused(err error) bool {
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && cmp.Or(said.SeverityUnlocalized, said.Severity) == "ERROR" && !strings.HasPrefix(said.Code, "08")
}

// isReadOnly says whether an error is that of a server that takes no writes.
func isReadOnly(err error) bool {
	const readOnly = "25006"
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && said.Code == readOnly
}

// explained says what to do about errors that have one cause.
func explained(err error) error {
	const noFunction, noTable, noSchema = "42883", "42P01", "3F000"
	if said, ok := errors.AsType[*pgconn.PgError](err); ok && (said.Code == noFunction || said.Code == noTable || said.Code == noSchema) {
		return &migrateError{err}
	}
	if isUnreadable(err) {
		return fmt.Errorf("%w: reset the key, or let a version of mete that knows the row take from it", err)
	}
	return err
}

type migrateError struct{ error }

func (e *migrateError) Error() string {
	return e.error.Error() + ": the schema is not there: call pgstore.Migrate"
}
func (e *migrateError) Unwrap() error { return e.error }

// isUndone says whether PostgreSQL has undone a statement so that another one could
// go on, and it may be tried again.
func isUndone(err error) bool {
	const deadlock = "40P01"
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && said.Code == deadlock || isSerialization(err)
}

// isSerialization says whether that was because of the level of isolation.
func isSerialization(err error) bool {
	const serialization = "40001"
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && said.Code == serialization
}

// named is err with the operation that failed.
func named(err error, op string) error {
	e := storeError(err)
	return &mete.StoreError{Op: op, Store: storeName, Spent: e.Spent, Err: e.Err}
}
