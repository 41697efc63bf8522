// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"

	"github.com/metehq/mete"
)

// A transactional store can make a take a part of its caller's transaction: see
// [mete.Store].
type transactional interface {
	InTransaction(ctx context.Context) bool
}

// joins returns what joins transactions: store, or a store that it wraps; nil for none.
func joins(store mete.Store) transactional {
	for store != nil {
		if t, ok := store.(transactional); ok {
			return t
		}
		w, ok := store.(interface{ Unwrap() mete.Store })
		if !ok {
			break
		}
		store = w.Unwrap()
	}
	return nil
}

// tentative reports whether what a call with ctx does may be rolled back.
func (s *Store) tentative(ctx context.Context) bool {
	return s.joins != nil && s.joins.InTransaction(ctx)
}

// Unwrap returns the store that s guards.
func (s *Store) Unwrap() mete.Store { return s.inner }
