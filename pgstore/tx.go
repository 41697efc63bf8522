// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// TakeTx is [Store.Take] within the transaction tx: what it charges is charged when
// tx is committed, and is not where it is rolled back. Nothing else may use tx at the
// same time.
//
// From then on until the end of tx, others that take from the same buckets wait: take
// late, and keep the transaction short. Transactions that take several times, in
// different orders, can block each other; PostgreSQL then ends one of them. Where tx
// is above read committed, a bucket that another has charged since tx began is an
// error that says so (SQLSTATE 40001), and tx may be tried again from its start.
//
// After an error nothing more can be done in tx but to roll it back, so that it
// always is NotSpent. What PostgreSQL refuses wraps [store.ErrTransaction]. [mete.Mode.Within] makes no difference: a context that ends
// would end the connection.
func (s *Store) TakeTx(ctx context.Context, tx pgx.Tx, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	if len(charges) == 0 {
		return dst, true, nil
	}
	a := s.newAsk(charges, mode)
	defer a.release()
	if err := s.runTx(ctx, tx, a, "take"); err != nil {
		return dst, false, err
	}
	return append(dst, a.snaps...), a.allowed, nil
}

// RefundTx is [Store.Refund] within the transaction tx, as [Store.TakeTx] is.
func (s *Store) RefundTx(ctx context.Context, tx pgx.Tx, refunds []mete.Refund, id string) error {
	if len(refunds) == 0 {
		return nil
	}
	a := s.newRefund(refunds, id)
	defer a.release()
	return s.runTx(ctx, tx, a, "refund")
}

func (s *Store) runTx(ctx context.Context, tx pgx.Tx, a *ask, op string) error {
	if err := usable(ctx, tx); err != nil {
		return txError(notSpent(err), op)
	}
	b := newBatch(s.inTx())
	b.Reset()
	b.Add(a)
	if _ = b.runOn(ctx, tx.Conn()); a.Err != nil {
		return txError(a.Err, op)
	}
	return nil
}

func txError(err error, op string) error {
	err = storeError(err).Err
	if _, said := errors.AsType[*pgconn.PgError](err); said {
		err = fmt.Errorf("%w: %w", store.ErrTransaction, err)
	}
	return &mete.StoreError{Op: op, Store: storeName, Spent: mete.NotSpent, Err: err}
}

// usable returns an error where nothing must be asked in tx any more: its connection
// may be somebody else's then. Only pgx knows, and tells who sends a batch; one that
// is empty goes nowhere.
func usable(ctx context.Context, tx pgx.Tx) error {
	switch err := ctx.Err(); {
	case err != nil:
		return err
	case tx == nil:
		return errNoTx
	}
	if err := tx.SendBatch(ctx, &pgx.Batch{}).Close(); err != nil {
		return err
	}
	const idle = 'I'
	if tx.Conn().PgConn().TxStatus() == idle { // it was ended by a statement
		return pgx.ErrTxClosed
	}
	return nil
}

// inTx is the store without what does not go with a transaction: statements that
// are prepared, whose absence would end it, and second tries.
func (s *Store) inTx() *Store {
	joined := &Store{config: s.config, statements: s.inTxs, joined: true}
	joined.unprepared.Store(true)
	joined.denying.Store(true) // a look is cheaper than a lock that lasts
	return joined
}

type txKey struct{}

// WithTx returns a context that makes every store of this package which is given it
// work within tx: so that a [mete.Limiter] decides by its rules, and what it takes,
// settles or gives back with that context is rolled back with tx. See [Store.TakeTx].
//
// Local spending of an outage is a debt of the process: the limiter charges it on a
// connection of its own before the take, and never within tx. The limiter does not
// remember what tx saw, since it may be rolled back.
//
// What rules do when the store fails is as always: where tx fails, a rule that says
// on_store_error: open lets the request through. The caller learns about it when it
// commits.
func WithTx(ctx context.Context, tx pgx.Tx) context.Context {
	return context.WithValue(ctx, txKey{}, joint{tx})
}

// InTransaction reports whether ctx is one of [WithTx]. What a take with it charges can
// still be rolled back: so a [mete.Limiter] and package guard learn nothing from it.
func (s *Store) InTransaction(ctx context.Context) bool {
	_, ok := txOf(ctx)
	return ok
}

// txOf is the transaction of a context. It may be nil where a caller has given that.
func txOf(ctx context.Context) (tx pgx.Tx, ok bool) {
	given, ok := ctx.Value(txKey{}).(joint)
	return given.tx, ok
}

// A joint is a transaction in a context.
type joint struct{ tx pgx.Tx }

var errNoTx = errors.New("the transaction is nil")
