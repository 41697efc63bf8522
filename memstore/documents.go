// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/metehq/mete/store"
)

const maxDocuments = 64

// documents holds the store's documents by name. [Store.Save] does not write them.
type documents struct {
	mu     sync.Mutex // guards the field below
	byName map[string]document
}

type document struct {
	data     []byte // never written to
	revision int64
}

var _ store.Documents = (*Store)(nil)

var errManyDocuments = errors.New("too many documents")

func (s *Store) Document(_ context.Context, name string, known int64) ([]byte, int64, error) {
	if err := store.CheckDocument(name, nil); err != nil {
		return nil, 0, fmt.Errorf("memstore: document: %w", err)
	}
	s.documents.mu.Lock()
	defer s.documents.mu.Unlock()
	d := s.documents.byName[name]
	if d.revision == known {
		return nil, d.revision, nil
	}
	return bytes.Clone(d.data), d.revision, nil
}

// SetDocument implements [store.Documents]. A store holds at most 64 documents, only in memory: [Store.Save]
// does not write them.
func (s *Store) SetDocument(_ context.Context, name string, data []byte, revision int64) (int64, error) {
	if err := store.CheckDocument(name, data); err != nil {
		return 0, fmt.Errorf("memstore: set document: %w", err)
	}
	s.documents.mu.Lock()
	defer s.documents.mu.Unlock()
	d, known := s.documents.byName[name]
	switch {
	case d.revision != revision:
		return 0, fmt.Errorf("memstore: set document: %w", store.ErrRevision)
	case !known && len(s.documents.byName) >= maxDocuments:
		return 0, fmt.Errorf("memstore: set document: %w: at most %d", errManyDocuments, maxDocuments)
	case s.documents.byName == nil:
		s.documents.byName = map[string]document{}
	}
	next := max(revision+1, int64(s.instant()))
	s.documents.byName[name] = document{append([]byte{}, data...), next}
	return next, nil
}
