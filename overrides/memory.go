// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"
	"sync"

	"github.com/metehq/mete/store"
)

type memory struct {
	mu       sync.Mutex // guards the fields below
	data     []byte
	revision int64
}

func (s *memory) Document(_ context.Context, _ string, known int64) ([]byte, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revision == known {
		return nil, known, nil
	}
	return s.data, s.revision, nil
}

func (s *memory) SetDocument(_ context.Context, _ string, data []byte, revision int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revision != revision {
		return 0, store.ErrRevision
	}
	s.data, s.revision = data, revision+1
	return s.revision, nil
}
