// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func TestDocumentFile(t *testing.T) {
	storetest.RunDocuments(t, func(t *testing.T) func() store.Documents {
		f := newDocumentFile(filepath.Join(t.TempDir(), "buckets"))
		return func() store.Documents { return f }
	})
}

// Written documents are visible to the next process. Documents that could not be written are not visible to this
// one.
func TestDocumentFile_Disk(t *testing.T) {
	stem := filepath.Join(t.TempDir(), "buckets")
	f := newDocumentFile(stem)
	revision, err := f.SetDocument(t.Context(), "a", []byte("one"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if data, _, err := newDocumentFile(stem).Document(t.Context(), "a", 0); string(data) != "one" || err != nil {
		t.Errorf("the next process reads %q, %v; want one", data, err)
	}
	if err := os.Mkdir(stem+".a.next", 0o700); err != nil { // so that nothing can be written
		t.Fatal(err)
	}
	if _, err := f.SetDocument(t.Context(), "a", []byte("two"), revision); err == nil {
		t.Error("no error although nothing can be written")
	}
	for _, f := range []*documentFile{f, newDocumentFile(stem)} {
		if data, _, err := f.Document(t.Context(), "a", 0); string(data) != "one" || err != nil {
			t.Errorf("after a write that failed: %q, %v; want one", data, err)
		}
	}
	none := newDocumentFile(filepath.Join(stem, "none", "x"))
	if _, err := none.SetDocument(t.Context(), "a", []byte("one"), 0); err == nil {
		t.Error("no error although there is no directory")
	}
}
