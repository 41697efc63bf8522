// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"

	"github.com/metehq/mete/store"
)

// IsHeld reports whether the store counts a bucket as held.
func (s *Store) IsHeld(key string) bool { return s.held.holdsAny([]store.Charge{{Key: key}}) }

// FindLocked looks for locked buckets on a connection of the pool.
func (s *Store) FindLocked(ctx context.Context, keys ...string) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	_, err = s.findLocked(ctx, conn.Conn(), keys)
	return err
}

// IsIsolated reports whether the store has found that the default isolation level is too high.
func (s *Store) IsIsolated() bool { return s.isolated.Load() }
