// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// A desk is a store and a table of work.
type desk struct {
	*testing.T
	pool   *pgxpool.Pool
	schema string
	store  *pgstore.Store
	limit  bucket.Limit
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	pool := newPool(t)
	d := &desk{T: t, pool: pool, schema: migrated(t, pool), limit: tokens(t, 10, "1/1000h")}
	d.store = open(t, pool, pgstore.Config{Schema: d.schema, Timeout: awhile})
	run(t, pool, "CREATE TABLE "+d.schema+".work (what text)")
	return d
}

func (d *desk) begin(options pgx.TxOptions) pgx.Tx {
	d.Helper()
	tx, err := d.pool.BeginTx(d.Context(), options)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { tx.Rollback(context.Background()) })
	return tx
}

// take takes within tx, and must succeed.
func (d *desk) take(tx pgx.Tx, cost bucket.Tokens, mode mete.Mode, keys ...string) bool {
	d.Helper()
	snaps, allowed, err := d.store.TakeTx(d.Context(), tx, nil, of(d.limit, cost, keys...), mode)
	if err != nil || len(snaps) != len(keys) {
		d.Fatalf("take %v of %q: %d snapshots, %v", cost, keys, len(snaps), err)
	}
	return allowed
}

func (d *desk) exec(tx pgx.Tx, sql string) {
	d.Helper()
	if _, err := tx.Exec(d.Context(), sql); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) work(tx pgx.Tx) { d.Helper(); d.exec(tx, "INSERT INTO "+d.schema+".work VALUES ('x')") }

func (d *desk) commit(tx pgx.Tx) {
	d.Helper()
	if err := tx.Commit(d.Context()); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) rollback(tx pgx.Tx) {
	d.Helper()
	if err := tx.Rollback(d.Context()); err != nil {
		d.Fatal(err)
	}
}

// has asserts the amount of finished work, and the tokens of the bucket k.
func (d *desk) has(work int64, tokens bucket.Tokens) {
	d.Helper()
	if got := number(d, d.pool, "SELECT count(*) FROM "+d.schema+".work"); got != work {
		d.Errorf("%d rows of work, want %d", got, work)
	}
	holds(d, d.store, "k", d.limit, tokens*bucket.Token)
}

func (d *desk) rows() int64 {
	d.Helper()
	return number(d, d.pool, "SELECT count(*) FROM "+d.schema+".bucket")
}

func TestTakeTx_IsOfTheTransaction(t *testing.T) {
	d := newDesk(t)
	tx := d.begin(pgx.TxOptions{})
	if !d.take(tx, 3, mete.Mode{}, "k") || !d.take(tx, 1, mete.Mode{}, "a", "k") || !d.take(tx, 2, mete.Mode{UpTo: true}, "k") {
		t.Error("a full bucket denied")
	}
	d.work(tx)
	d.rollback(tx)
	d.has(0, 10)
	if n := d.rows(); n != 0 {
		t.Errorf("%d rows after a rollback, want none", n)
	}

	tx = d.begin(pgx.TxOptions{})
	d.take(tx, 3, mete.Mode{}, "k")
	d.work(tx)
	if err := d.store.RefundTx(t.Context(), tx, storetest.Refunds(of(d.limit, 1, "k")...), ""); err != nil {
		t.Fatal(err)
	}
	d.take(tx, 4, mete.Mode{}, "a", "k")
	d.commit(tx)
	d.has(1, 4)

	tx = d.begin(pgx.TxOptions{})
	if err := d.store.RefundTx(t.Context(), tx, storetest.Refunds(of(d.limit, 3, "k")...), ""); err != nil {
		t.Fatal(err)
	}
	d.rollback(tx)
	d.has(1, 4)
}

// TestTakeTx_Savepoint rolls back a part of a transaction.
func TestTakeTx_Savepoint(t *testing.T) {
	d := newDesk(t)
	tx := d.begin(pgx.TxOptions{})
	d.take(tx, 1, mete.Mode{}, "k")
	inner, err := tx.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d.take(inner, 4, mete.Mode{}, "k")
	d.work(inner)
	d.rollback(inner)
	d.work(tx)
	if inner, err = tx.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.take(inner, 2, mete.Mode{}, "k", "l")
	d.commit(inner)
	if _, _, err := d.store.TakeTx(t.Context(), inner, nil, of(d.limit, 1, "k"), mete.Mode{}); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("a savepoint that has been released: %v, want %v", err, pgx.ErrTxClosed)
	}
	d.commit(tx)
	d.has(1, 7)
}

// TestTakeTx_Denied spends nothing, and the transaction continues.
func TestTakeTx_Denied(t *testing.T) {
	d := newDesk(t)
	takes(t, d.store, of(d.limit, 10, "k"), mete.Mode{})
	for _, keys := range [][]string{{"k"}, {"a", "k"}, {"k", "z"}} {
		tx := d.begin(pgx.TxOptions{})
		if d.take(tx, 1, mete.Mode{}, keys...) || d.take(tx, 1, mete.Mode{ID: "x"}, keys...) {
			t.Errorf("%q: admitted by an empty bucket", keys)
		}
		d.work(tx)
		d.commit(tx)
	}
	d.has(3, 0)
	if n := d.rows(); n != 1 {
		t.Errorf("%d rows, want that of the bucket that is empty", n)
	}
	if n := number(t, d.pool, "SELECT count(*) FROM "+d.schema+".bucket_memory"); n != 0 {
		t.Errorf("%d denials are remembered", n)
	}
}

// TestTakeTx_IDOfARollback proves that a rolled-back ID counts as unused.
func TestTakeTx_IDOfARollback(t *testing.T) {
	d := newDesk(t)
	for i, keys := range [][]string{{"k"}, {"a", "k"}} {
		mode := mete.Mode{ID: fmt.Sprint("id", i)}
		tx := d.begin(pgx.TxOptions{})
		d.take(tx, 1, mode, keys...)
		d.take(tx, 1, mode, keys...) // the same
		d.rollback(tx)
		tx = d.begin(pgx.TxOptions{})
		d.take(tx, 1, mode, keys...)
		d.commit(tx)
		takes(t, d.store, of(d.limit, 1, keys...), mode) // the same
		tx = d.begin(pgx.TxOptions{})
		d.take(tx, 1, mode, keys...) // the same
		d.commit(tx)
	}
	d.has(0, 8)
}

// TestTakeTx_OthersWait takes from a bucket that a transaction has used. The takes are answered after its end, by
// its outcome.
func TestTakeTx_OthersWait(t *testing.T) {
	for _, commits := range []bool{true, false} {
		t.Run(fmt.Sprint("commits ", commits), func(t *testing.T) {
			d := newDesk(t)
			tx := d.begin(pgx.TxOptions{})
			d.take(tx, 10, mete.Mode{}, "k")
			answers := make(chan bool, 2)
			for _, keys := range [][]string{{"k"}, {"a", "k"}} {
				other := open(t, d.pool, pgstore.Config{Schema: d.schema, Timeout: awhile})
				go func() {
					_, allowed, err := other.Take(context.Background(), nil, of(d.limit, 5, keys...), mete.Mode{})
					if err != nil {
						t.Errorf("take of %q: %v", keys, err)
					}
					answers <- allowed
				}()
			}
			until(t, func() error {
				if n := number(t, d.pool, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%'||$1||'%'", d.schema); n != 2 {
					return fmt.Errorf("%d wait, want 2", n)
				}
				return nil
			})
			if commits {
				d.commit(tx)
			} else {
				d.rollback(tx)
			}
			for range 2 {
				if allowed := <-answers; allowed == commits {
					t.Errorf("allowed %v, want %v", allowed, !commits)
				}
			}
			d.has(0, 0)
		})
	}
}

// TestTakeTx_Ended covers transactions that can no longer be used.
func TestTakeTx_Ended(t *testing.T) {
	d := newDesk(t)
	takes(t, d.store, of(d.limit, 1, "k"), mete.Mode{}) // there is something to refund
	ways := map[string]func(tx pgx.Tx) error{
		"take": func(tx pgx.Tx) error {
			_, _, err := d.store.TakeTx(t.Context(), tx, nil, of(d.limit, 1, "k"), mete.Mode{})
			return err
		},
		"take of two": func(tx pgx.Tx) error {
			_, _, err := d.store.TakeTx(t.Context(), tx, nil, of(d.limit, 1, "k", "l"), mete.Mode{})
			return err
		},
		"refund": func(tx pgx.Tx) error {
			return d.store.RefundTx(t.Context(), tx, storetest.Refunds(of(d.limit, 1, "k")...), "")
		},
		"reset": func(tx pgx.Tx) error { return d.store.Reset(pgstore.WithTx(t.Context(), tx), []string{"k"}) },
		"take with": func(tx pgx.Tx) error {
			_, _, err := d.store.Take(pgstore.WithTx(t.Context(), tx), nil, of(d.limit, 1, "k"), mete.Mode{})
			return err
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			committed := d.begin(pgx.TxOptions{})
			d.commit(committed)
			notSpent(t, way(committed), pgx.ErrTxClosed)

			ended := d.begin(pgx.TxOptions{})
			d.exec(ended, "COMMIT")
			notSpent(t, way(ended), pgx.ErrTxClosed)
			_ = ended.Rollback(t.Context()) // releases the connection

			aborted := d.begin(pgx.TxOptions{})
			if _, err := aborted.Exec(t.Context(), "SELECT 1/0"); err == nil {
				t.Fatal("1/0: no error")
			}
			err := way(aborted)
			notSpent(t, err, nil)
			isState(t, err, "25P02")
			if err := aborted.Rollback(t.Context()); err != nil {
				t.Error(err)
			}

			reading := d.begin(pgx.TxOptions{AccessMode: pgx.ReadOnly})
			err = way(reading)
			notSpent(t, err, nil)
			isState(t, err, "25006")
			if err := reading.Rollback(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	d.has(0, 9)
}

// isState asserts a SQLSTATE.
func isState(t testing.TB, err error, want string) {
	t.Helper()
	if said, ok := errors.AsType[*pgconn.PgError](err); !ok || said.Code != want {
		t.Errorf("%v: want SQLSTATE %s", err, want)
	}
}

// TestTakeTx_RepeatableRead has concurrent transactions that conflict: each fails with a serialization error and
// is retried as a whole.
func TestTakeTx_RepeatableRead(t *testing.T) {
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			d := newDesk(t)
			takes(t, d.store, of(d.limit, 1, "k"), mete.Mode{})
			tx := d.begin(pgx.TxOptions{IsoLevel: level})
			d.exec(tx, "SELECT count(*) FROM "+d.schema+".work") // starts the transaction
			takes(t, d.store, of(d.limit, 1, "k"), mete.Mode{})
			_, _, err := d.store.TakeTx(t.Context(), tx, nil, of(d.limit, 1, "k"), mete.Mode{})
			notSpent(t, err, nil)
			isState(t, err, "40001")
			d.rollback(tx)

			var all sync.WaitGroup
			for range 4 {
				all.Go(func() { d.retried(level) })
			}
			all.Wait()
			d.has(4, 4)
		})
	}
}

// retried takes one token and does some work, with as many retries as needed.
func (d *desk) retried(level pgx.TxIsoLevel) {
	for range 1000 {
		err := pgx.BeginTxFunc(d.Context(), d.pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(d.Context(), "INSERT INTO "+d.schema+".work VALUES ('x')"); err != nil {
				return err
			}
			_, allowed, err := d.store.TakeTx(d.Context(), tx, nil, of(d.limit, 1, "k"), mete.Mode{})
			if err == nil && !allowed {
				err = errors.New("denied")
			}
			return err
		})
		if said, ok := errors.AsType[*pgconn.PgError](err); ok && said.Code == "40001" {
			continue
		}
		if err != nil {
			d.Error(err)
		}
		return
	}
	d.Error("a transaction was undone a thousand times")
}

// TestWithTx_Limiter decides by a policy within a transaction: takes, reservations, settlements and refunds share
// its outcome.
func TestWithTx_Limiter(t *testing.T) {
	d := newDesk(t)
	m, err := policy.Load([]byte(`{"rules": [
		{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rate": "1/1000h", "burst": 5}, "on_store_error": "closed", "deadline": "10s"},
		{"name": "all", "limit_keys": [], "algorithm_config": {"rate": "1/1000h", "burst": 20}, "on_store_error": "closed", "deadline": "10s"}
	]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(d.store, m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	request := mete.Request{Attributes: mete.Attrs{"header:x-user": "u"}, Cost: 1}
	hold := func(want ...int64) {
		t.Helper()
		seen, err := l.Peek(t.Context(), request)
		if err != nil || len(seen.Limits()) != 2 {
			t.Fatalf("peek: %d limits, %v", len(seen.Limits()), err)
		}
		for i, s := range seen.Limits() {
			if got := s.Remaining().Whole(); got != want[i] {
				t.Errorf("limit %q holds %d tokens, want %d", s.Limit.Name, got, want[i])
			}
		}
	}
	for _, commits := range []bool{false, true} {
		tx := d.begin(pgx.TxOptions{})
		ctx := pgstore.WithTx(t.Context(), tx)
		for range 2 {
			if got, err := l.Take(ctx, request); err != nil || !got.Allowed || got.Degraded {
				t.Errorf("take: %+v, %v", got, err)
			}
		}
		if err := l.Refund(ctx, request); err != nil {
			t.Error(err)
		}
		reserved := request
		reserved.Cost = 3
		r, err := l.Reserve(ctx, reserved)
		if err != nil || !r.Allowed {
			t.Fatalf("reserve: %v", err)
		}
		if err := r.Settle(ctx, 2); err != nil {
			t.Error(err)
		}
		hold(5, 20) // for others, until the end
		if !commits {
			d.rollback(tx)
			hold(5, 20)
			continue
		}
		d.commit(tx)
		hold(2, 17)
	}
	tx := d.begin(pgx.TxOptions{})
	if err := l.Reset(pgstore.WithTx(t.Context(), tx), request); err != nil {
		t.Error(err)
	}
	d.rollback(tx)
	hold(2, 17)
	if got, err := l.Take(pgstore.WithTx(t.Context(), tx), request); err != nil || got.Allowed || !got.Degraded {
		t.Errorf("take in a transaction that has ended: %+v, %v; want degraded, and closed", got, err)
	}
}

// TestTakeTx_NoCharges takes no charges without a transaction.
func TestTakeTx_NoCharges(t *testing.T) {
	d := newDesk(t)
	tx := d.begin(pgx.TxOptions{})
	if snaps, allowed, err := d.store.TakeTx(t.Context(), tx, nil, nil, mete.Mode{}); len(snaps) != 0 || !allowed || err != nil {
		t.Errorf("no charges: %v, allowed %v, %v", snaps, allowed, err)
	}
	if err := d.store.RefundTx(t.Context(), tx, nil, ""); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := d.store.TakeTx(ctx, tx, nil, of(d.limit, 1, "k"), mete.Mode{})
	notSpent(t, err, context.Canceled)
	d.take(tx, 1, mete.Mode{}, "k") // the transaction still works
	d.commit(tx)
	d.has(0, 9)
}
