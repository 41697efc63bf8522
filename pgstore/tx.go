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

// TakeTx is [Store.Take] within the transaction tx: the charge takes effect when tx commits, and is discarded
// when tx rolls back. Nothing else may use tx at the same time.
//
// Until tx ends, other takes from the same buckets wait: take late, and keep the transaction short. Transactions
// that take several times in different orders can deadlock; PostgreSQL then ends one of them. If the isolation
// level of tx is above read committed, a bucket that was charged since tx began causes an error with SQLSTATE
// 40001. The caller can then retry the whole transaction.
//
// After an error, tx can only be rolled back, so the error is always NotSpent. Errors of PostgreSQL wrap
// [store.ErrTransaction]. [mete.Mode.Within] has no effect, because an expired context would end the connection.
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

// RefundTx is [Store.Refund] within the transaction tx: see [Store.TakeTx].
func (s *Store) RefundTx(ctx context.Context, tx pgx.Tx, refunds []mete.Refund, id string) error {
	if len(refunds) == 0 {
		return nil
	}
	a := s.newRefund(refunds, id)
	defer a.release()
	return s.runTx(ctx, tx, a, "refund")
}

func (s *Store) runTx(ctx context.Context, tx pgx.Tx, a *ask, op string) error {
	if err := checkTx(ctx, tx); err != nil {
		return newTxError(newNotSpent(err), op)
	}
	b := newBatch(s.joinedStore())
	b.Reset()
	b.Add(a)
	if _ = b.runOn(ctx, tx.Conn()); a.Err != nil {
		return newTxError(a.Err, op)
	}
	return nil
}

func newTxError(err error, op string) error {
	err = newStoreError(err).Err
	if _, pgErr := errors.AsType[*pgconn.PgError](err); pgErr {
		err = fmt.Errorf("%w: %w", store.ErrTransaction, err)
	}
	return &mete.StoreError{Op: op, Store: storeName, Spent: mete.NotSpent, Err: err}
}

// checkTx returns an error if tx has ended, because another client may use its connection then. Only pgx knows,
// and reports it when a batch is sent; an empty batch sends nothing.
func checkTx(ctx context.Context, tx pgx.Tx) error {
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
	if tx.Conn().PgConn().TxStatus() == idle { // a statement ended it
		return pgx.ErrTxClosed
	}
	return nil
}

// joinedStore returns a store for use in a transaction: without retries, and without prepared statements, because
// a missing one would end the transaction.
func (s *Store) joinedStore() *Store {
	joined := &Store{config: s.config, statements: s.txStatements, joined: true}
	joined.unprepared.Store(true)
	joined.denying.Store(true) // reading first is cheaper than a lock until the end of the transaction
	return joined
}

type txKey struct{}

// WithTx returns a context that makes the stores of this package work within tx. A [mete.Limiter] then decides by
// its rules, and its takes, settlements and refunds with this context roll back with tx. See [Store.TakeTx].
//
// The limiter charges tokens that were spent during an outage on a separate connection, before the take and
// never within tx. It does not cache decisions of tx, because they can roll back.
//
// Rules apply on_store_error as usual: if tx fails, a rule with on_store_error: open admits the request. The
// caller learns about the failure at the commit.
func WithTx(ctx context.Context, tx pgx.Tx) context.Context {
	return context.WithValue(ctx, txKey{}, txValue{tx})
}

// InTransaction reports whether ctx is from [WithTx]. A take with it can still roll back, so a [mete.Limiter] and
// package guard draw no conclusions from it.
func (s *Store) InTransaction(ctx context.Context) bool {
	_, ok := txFrom(ctx)
	return ok
}

// txFrom returns the transaction of a context. It can be nil.
func txFrom(ctx context.Context) (tx pgx.Tx, ok bool) {
	given, ok := ctx.Value(txKey{}).(txValue)
	return given.tx, ok
}

type txValue struct{ tx pgx.Tx }

var errNoTx = errors.New("the transaction is nil")
