// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// The first mixed call on a connection is about ten times slower than the next ones, because PostgreSQL compiles the
// functions for each connection. On a busy machine it can exceed every deadline. The connection is then closed, and
// the next call starts again with a new one. After such a call, the store therefore warms new connections. It makes a call
// with its own timeout, which compiles the functions, and rolls it back.

// isWarm reports whether the connection has answered a mixed call.
func (s *Store) isWarm(conn *pgx.Conn) bool {
	return conn.PgConn().CustomData()[s.statements.take.name] != nil
}

func (s *Store) markWarm(conn *pgx.Conn) {
	if !s.joined && !s.isWarm(conn) {
		conn.PgConn().CustomData()[s.statements.take.name] = true
	}
}

// noticeSlowStart starts the warming of connections if a call exceeded its deadline on one that was not warm.
func (s *Store) noticeSlowStart(conn *pgx.Conn, err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) && !s.isWarm(conn) {
		s.slowStart.Store(true)
	}
}

// acquire takes a connection from the pool. The warming of a connection continues after the timeout, so that a later
// call finds it warm.
func (s *Store) acquire(timeout time.Duration) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	if err != nil || !s.slowStart.Load() || s.isWarm(conn.Conn()) {
		return conn, err
	}
	warmed := make(chan struct{})
	go func() {
		defer close(warmed)
		s.warm(conn.Conn())
	}()
	select {
	case <-warmed:
		return conn, nil
	case <-ctx.Done():
		go func() {
			<-warmed
			conn.Release()
		}()
		return nil, ctx.Err()
	}
}

// warm makes a mixed call on conn and rolls it back. An error is ignored, because the next call meets it too.
func (s *Store) warm(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Timeout)
	defer cancel()
	if s.isolated.Load() {
		return // its calls commit
	}
	if _, err := conn.Exec(ctx, "BEGIN", pgx.QueryExecModeSimpleProtocol); err != nil {
		return
	}
	limit, err := bucket.NewLimit(bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Hour})
	if err == nil {
		b := newBatch(s)
		b.Reset()
		b.setLockTimeout(s.config.Timeout)
		a := s.newAsk([]store.Charge{{Key: "warm:" + rand.Text(), Limit: limit, Cost: bucket.Token}}, mete.Mode{})
		err = b.takeRest(ctx, conn, []*ask{a})
	}
	if _, failed := conn.Exec(ctx, "ROLLBACK", pgx.QueryExecModeSimpleProtocol); failed != nil {
		_ = conn.Close(ctx) // a connection in a transaction serves no other call
		return
	}
	if err == nil {
		s.markWarm(conn)
	}
}
