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

// A Store guards another. It is made by [New], is safe for concurrent use, and
// starts no goroutines.
type Store struct {
	inner   mete.Store
	joins   transactional // nil where the store joins no transactions
	breaker *breaker      // nil where there is none
}

// New returns a store that guards the given one. Its errors say all that is
// wrong with the config.
func New(store mete.Store, config Config) (*Store, error) {
	c, err := config.complete()
	if store == nil {
		err = errors.Join(errors.New("guard: no store"), err)
	}
	if err != nil {
		return nil, err
	}
	s := &Store{inner: store, joins: joins(store)}
	if !c.NoBreaker {
		s.breaker = newBreaker(c)
	}
	return s, nil
}

// Take implements [mete.Store]. Its own errors wrap [store.ErrUnavailable], and nothing was
// spent. A take in the caller's transaction always goes to the store.
func (s *Store) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) (answer []bucket.Snapshot, allowed bool, err error) {
	if s.breaker == nil || s.tentative(ctx) {
		return s.inner.Take(ctx, dst, charges, mode)
	}
	c, err := s.breaker.enter(ctx, "take", mode.Within)
	if err != nil {
		return dst, false, err
	}
	defer c.leave(&err)
	err = errPanic // unless it returns
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

// call asks the store by f, if the breaker lets it.
func (s *Store) call(ctx context.Context, op string, f func() error) (err error) {
	if s.breaker == nil || s.tentative(ctx) {
		return f()
	}
	c, err := s.breaker.enter(ctx, op, 0)
	if err != nil {
		return err
	}
	defer c.leave(&err)
	err = errPanic
	return f()
}

// Ping implements [store.Pinger]: it asks the store itself, whatever the breaker
// says, and the breaker does not count it. Where the store is no Pinger it says
// what the breaker thinks.
func (s *Store) Ping(ctx context.Context) error {
	if p, ok := s.inner.(store.Pinger); ok {
		return p.Ping(ctx)
	}
	if s.State() == Open {
		return unavailable("ping", errOpen)
	}
	return nil
}

// Close closes the store if it is an [io.Closer]. The guard itself has nothing
// to close.
func (s *Store) Close() error {
	if c, ok := s.inner.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// State is that of the breaker: Closed where there is none. An open one is
// half-open from the first call that it lets through.
func (s *Store) State() State {
	if s.breaker == nil {
		return Closed
	}
	return s.breaker.now()
}

// Stats are numbers of a [Store] since it was made.
type Stats struct {
	State    State
	Opened   uint64 // how often the breaker opened, from either state
	Rejected uint64 // calls that it let fail at once
}

// Stats returns the numbers as they are, not all of one instant.
func (s *Store) Stats() Stats {
	stats := Stats{State: s.State()}
	if b := s.breaker; b != nil {
		stats.Opened, stats.Rejected = b.opened.Load(), b.rejected.Load()
	}
	return stats
}
