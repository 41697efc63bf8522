// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"

	"github.com/metehq/mete"
)

// A transactional store can take within its caller's transaction: see [store.Transactional].
type transactional interface {
	InTransaction(ctx context.Context) bool
}

// findTransactional returns store, or a store that it wraps, if it joins transactions; otherwise nil.
func findTransactional(store mete.Store) transactional {
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

func (s *Store) inTransaction(ctx context.Context) bool {
	return s.transactional != nil && s.transactional.InTransaction(ctx)
}

// Unwrap returns the guarded store.
func (s *Store) Unwrap() mete.Store { return s.inner }
