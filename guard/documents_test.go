// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"errors"
	"testing"

	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func TestStore_Documents(t *testing.T) {
	storetest.RunDocuments(t, func(t *testing.T) func() store.Documents {
		inner, err := memstore.New(memstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s := guarded(t, inner, guard.Config{})
		return func() store.Documents { return s }
	})
}

func TestStore_NoDocuments(t *testing.T) {
	s := guarded(t, yes{}, guard.Config{})
	if _, _, err := s.Document(context.Background(), "a", 0); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Document of a store that keeps none: %v, want %v", err, errors.ErrUnsupported)
	}
	if _, err := s.SetDocument(context.Background(), "a", nil, 0); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("SetDocument of a store that keeps none: %v, want %v", err, errors.ErrUnsupported)
	}
}
