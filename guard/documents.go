// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"

	"github.com/metehq/mete/store"
)

var _ store.Documents = (*Store)(nil)

// Document implements [store.Documents]. It asks the store itself, whatever the
// breaker says, and the breaker does not count it: it is asked at intervals, and by
// administrators.
func (s *Store) Document(ctx context.Context, name string, known int64) ([]byte, int64, error) {
	d, ok := s.inner.(store.Documents)
	if !ok {
		return nil, 0, fmt.Errorf("guard: document: %w", errors.ErrUnsupported)
	}
	return d.Document(ctx, name, known)
}

// SetDocument implements [store.Documents], as Document does.
func (s *Store) SetDocument(ctx context.Context, name string, data []byte, revision int64) (int64, error) {
	d, ok := s.inner.(store.Documents)
	if !ok {
		return 0, fmt.Errorf("guard: set document: %w", errors.ErrUnsupported)
	}
	return d.SetDocument(ctx, name, data, revision)
}
