// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"io"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A Store guards another store. [New] creates it. It is safe for concurrent use and starts no goroutines.
type Store struct {
	inner         mete.Store
	transactional transactional // nil if the store joins no transactions
	breaker       *breaker      // nil if disabled
}

// New returns a store that guards the given one. The error joins all errors of config.
func New(store mete.Store, config Config) (*Store, error) {
	c, err := config.withDefaults()
	if store == nil {
		err = errors.Join(errors.New("guard: a store is required"), err)
	}
	if err != nil {
		return nil, err
	}
	s := &Store{inner: store, transactional: findTransactional(store)}
	if !c.NoBreaker {
		s.breaker = newBreaker(c)
	}
	return s, nil
}

// Take implements [mete.Store]. If the breaker rejects a take, the error wraps [store.ErrUnavailable], and
// nothing is spent. A take in the caller's transaction bypasses the breaker.
func (s *Store) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) (answer []bucket.Snapshot, allowed bool, err error) {
	if s.breaker == nil || s.inTransaction(ctx) {
		return s.inner.Take(ctx, dst, charges, mode)
	}
	c, err := s.breaker.admit(ctx, "take", mode.Within)
	if err != nil {
		return dst, false, err
	}
	defer c.finish(&err)
	err = errPanic // replaced when the call returns
	return s.inner.Take(ctx, dst, charges, mode)
}

// Refund implements [mete.Store].
func (s *Store) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	return s.call(ctx, "refund", func() error { return s.inner.Refund(ctx, refunds, id) })
}

// Reset implements [mete.Store].
func (s *Store) Reset(ctx context.Context, keys []string) error {
	return s.call(ctx, "reset", func() error { return s.inner.Reset(ctx, keys) })
}

func (s *Store) call(ctx context.Context, op string, f func() error) (err error) {
	if s.breaker == nil || s.inTransaction(ctx) {
		return f()
	}
	c, err := s.breaker.admit(ctx, op, 0)
	if err != nil {
		return err
	}
	defer c.finish(&err)
	err = errPanic
	return f()
}

// Ping implements [store.Pinger]. It pings the store, bypassing the breaker. If the store is not a Pinger, Ping
// fails while the breaker is open.
func (s *Store) Ping(ctx context.Context) error {
	if p, ok := s.inner.(store.Pinger); ok {
		return p.Ping(ctx)
	}
	if s.State() == StateOpen {
		return newUnavailable("ping", errOpen)
	}
	return nil
}

// Close closes the store if it is an [io.Closer].
func (s *Store) Close() error {
	if c, ok := s.inner.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// State returns the state of the breaker, and [StateClosed] if the breaker is disabled. An open breaker becomes
// half-open at its first probe.
func (s *Store) State() State {
	if s.breaker == nil {
		return StateClosed
	}
	return s.breaker.currentState()
}

// Stats holds counters of a [Store] since its creation.
type Stats struct {
	State    State
	Opened   uint64 // number of openings
	Rejected uint64 // number of rejected calls
}

// Stats returns the counters. They are not an atomic snapshot.
func (s *Store) Stats() Stats {
	stats := Stats{State: s.State()}
	if b := s.breaker; b != nil {
		stats.Opened, stats.Rejected = b.opened.Load(), b.rejected.Load()
	}
	return stats
}
