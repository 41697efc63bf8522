// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"fmt"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func TestStore_Documents(t *testing.T) {
	for name, now := range map[string]func() bucket.Instant{
		"by the clock": nil,
		"in no time":   func() bucket.Instant { return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.RunDocuments(t, func(t *testing.T) func() store.Documents {
				s := mustNew(t, memstore.Config{Now: now})
				return func() store.Documents { return s }
			})
		})
	}
}

func TestStore_ManyDocuments(t *testing.T) {
	s := mustNew(t, memstore.Config{})
	for i := range 64 {
		if _, err := s.SetDocument(t.Context(), fmt.Sprint(i), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.SetDocument(t.Context(), "one-more", nil, 0); err == nil {
		t.Error("a 65th document is kept")
	}
	if _, revision, _ := s.Document(t.Context(), "63", 0); revision == 0 {
		t.Error("the 64th is gone")
	} else if _, err := s.SetDocument(t.Context(), "63", nil, revision); err != nil {
		t.Errorf("replacing one of 64: %v", err)
	}
}
