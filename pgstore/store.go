// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/calls"
	"github.com/metehq/mete/internal/lane"
	"github.com/metehq/mete/store"
)

// A Store keeps buckets in PostgreSQL: it is a [mete.Store] and a [store.Pinger]. [New] and [Open] create it. It
// is safe for concurrent use. [Store.Close] ends its goroutines.
type Store struct {
	pool         *pgxpool.Pool
	config       Config
	statements   statements
	txStatements statements // for transactions of callers
	lanes        *lane.Lanes[*ask]
	sweeper      *sweeper

	unprepared atomic.Bool // prepared statements do not work
	isolated   atomic.Bool // the default isolation level is too high
	denying    atomic.Bool // see looksFirst
	slowStart  atomic.Bool // warm new connections
	joined     bool        // the store belongs to one transaction of a caller
	held       held
	calls      calls.Counts
}

var _ interface {
	mete.Store
	store.Pinger
} = (*Store)(nil)

// New returns a store that uses pool. The caller closes pool after the store. The schema must exist: see
// [Migrate]. [ParseURL] returns a suitable pool configuration.
func New(pool *pgxpool.Pool, config Config) (*Store, error) {
	if pool == nil {
		return nil, errors.New("pgstore: new: pool is required")
	}
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("pgstore: new: %w", err)
	}
	s := &Store{pool: pool, config: config, statements: newStatements(config.Schema, config.Durable, false),
		txStatements: newStatements(config.Schema, config.Durable, true)}
	s.unprepared.Store(!canPrepare(pool.Config().ConnConfig.DefaultQueryExecMode))
	s.lanes = lane.New(lane.Config[*ask]{
		Lanes: laneCount, MaxBatch: config.MaxBatch, MaxQueue: config.MaxQueue, MaxInFlight: config.MaxInFlight, Timeout: config.Timeout,
		NewBatch: func() lane.Batch[*ask] { return newBatch(s) },
	})
	if config.Now == nil && config.SweepEvery > 0 {
		s.sweeper = startSweeper(s)
	}
	return s, nil
}

// Take implements [mete.Store].
func (s *Store) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	if tx, ok := txFrom(ctx); ok {
		return s.TakeTx(ctx, tx, dst, charges, mode)
	}
	if len(charges) == 0 {
		return dst, true, nil
	}
	a := s.newAsk(charges, mode)
	if err := s.run(ctx, a, "take"); err != nil {
		return dst, false, err
	}
	dst, allowed := append(dst, a.snaps...), a.allowed
	a.release()
	return dst, allowed, nil
}

// Refund implements [mete.Store].
func (s *Store) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	if tx, ok := txFrom(ctx); ok {
		return s.RefundTx(ctx, tx, refunds, id)
	}
	if len(refunds) == 0 {
		return nil
	}
	a := s.newRefund(refunds, id)
	if err := s.run(ctx, a, "refund"); err != nil {
		return err
	}
	a.release()
	return nil
}

// run submits a. If it returns an error, the caller no longer owns a.
func (s *Store) run(ctx context.Context, a *ask, op string) error {
	free, err := s.submit(ctx, a)
	if err == nil {
		return nil
	}
	if free {
		a.release()
	}
	return withOp(err, op)
}

// Reset implements [mete.Store]. All keys are reset atomically.
func (s *Store) Reset(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	keys = slices.Clone(keys)
	slices.Sort(keys) // the locking order
	keys = slices.Compact(keys)
	var p packet
	p.beginArray(pgtype.ByteaOID, len(keys))
	for _, k := range keys {
		p.appendText(s.config.Prefix, k)
	}
	if tx, ok := txFrom(ctx); ok {
		err := checkTx(ctx, tx)
		if err == nil {
			err = s.joinedStore().query(ctx, tx.Conn(), &s.statements.reset, p.end(), discardRow)
		}
		if err != nil {
			return newTxError(err, "reset")
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return withOp(newNotSpent(err), "reset")
	}
	defer conn.Release()
	err = s.retry(ctx, conn.Conn(), func(ctx context.Context, conn *pgx.Conn) error {
		return s.query(ctx, conn, &s.statements.reset, p.end(), discardRow)
	})
	if err != nil {
		return withOp(err, "reset")
	}
	return nil
}

func discardRow([][]byte) {}

// Ping implements [store.Pinger]. It also verifies that the schema exists.
func (s *Store) Ping(ctx context.Context) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return withOp(newNotSpent(err), "ping")
	}
	defer conn.Release()
	if err := s.query(ctx, conn.Conn(), &s.statements.ping, nil, discardRow); err != nil {
		return withOp(err, "ping")
	}
	return nil
}

// Close waits for the calls in flight and ends the store's goroutines. Later calls fail. The pool stays open.
func (s *Store) Close() error {
	s.lanes.Close()
	if s.sweeper != nil {
		s.sweeper.close()
	}
	return nil
}
