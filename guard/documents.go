// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"

	"github.com/metehq/mete/store"
)

var _ store.Documents = (*Store)(nil)

// Document implements [store.Documents]. It bypasses the breaker, because documents are read only at intervals
// and by admins.
func (s *Store) Document(ctx context.Context, name string, known int64) ([]byte, int64, error) {
	d, ok := s.inner.(store.Documents)
	if !ok {
		return nil, 0, fmt.Errorf("guard: document: %w", errors.ErrUnsupported)
	}
	return d.Document(ctx, name, known)
}

// SetDocument implements [store.Documents]. It bypasses the breaker, too.
func (s *Store) SetDocument(ctx context.Context, name string, data []byte, revision int64) (int64, error) {
	d, ok := s.inner.(store.Documents)
	if !ok {
		return 0, fmt.Errorf("guard: set document: %w", errors.ErrUnsupported)
	}
	return d.SetDocument(ctx, name, data, revision)
}
