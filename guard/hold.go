// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

var _ store.Holder = (*Store)(nil)

// holder returns the holds of the guarded store.
func (s *Store) holder() (store.Holder, error) {
	h, ok := store.As[store.Holder](s.inner)
	if !ok {
		return nil, fmt.Errorf("guard: hold: %w by the store", errors.ErrUnsupported)
	}
	return h, nil
}

// Hold implements [store.Holder]. If the breaker rejects a hold, the error wraps [store.ErrUnavailable], and nothing is
// spent. Holds never join a transaction, so they never bypass the breaker.
func (s *Store) Hold(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode, h store.Hold) (snaps []bucket.Snapshot, id string, err error) {
	inner, err := s.holder()
	if err != nil {
		return dst, "", err
	}
	snaps = dst
	err = s.callHolder(ctx, "hold", mode.Within, func() (err error) {
		snaps, id, err = inner.Hold(ctx, dst, charges, mode, h)
		return err
	})
	return snaps, id, err
}

// Settle implements [store.Holder].
func (s *Store) Settle(ctx context.Context, id string, actual ...bucket.Tokens) (status store.HoldStatus, err error) {
	inner, err := s.holder()
	if err != nil {
		return status, err
	}
	err = s.callHolder(ctx, "settle", 0, func() (err error) {
		status, err = inner.Settle(ctx, id, actual...)
		return err
	})
	return status, err
}

// Renew implements [store.Holder].
func (s *Store) Renew(ctx context.Context, id string, ttl time.Duration) (status store.HoldStatus, err error) {
	inner, err := s.holder()
	if err != nil {
		return status, err
	}
	err = s.callHolder(ctx, "renew", 0, func() (err error) {
		status, err = inner.Renew(ctx, id, ttl)
		return err
	})
	return status, err
}

func (s *Store) callHolder(ctx context.Context, op string, within time.Duration, f func() error) (err error) {
	if s.breaker == nil {
		return f()
	}
	c, err := s.breaker.admit(ctx, op, within)
	if err != nil {
		return err
	}
	defer c.finish(&err)
	err = errPanic // replaced when the call returns
	return f()
}

// isHoldRefusal reports whether the store refused a hold for a reason of the caller.
func isHoldRefusal(err error) bool {
	return errors.Is(err, store.ErrHold) || errors.Is(err, store.ErrHoldKeys) || errors.Is(err, store.ErrHoldEnded) || errors.Is(err, store.ErrTooManyHolds)
}
