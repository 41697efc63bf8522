// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/metehq/mete/store"
)

// OpenDocuments prepares storage without documents, and returns a function that opens stores on it. Stores on
// disk share their documents. A store in memory returns the same store each time.
type OpenDocuments func(t *testing.T) (open func() store.Documents)

// RunDocuments tests a store with documents. Each subtest is named after a guarantee of [store.Documents].
func RunDocuments(t *testing.T, at OpenDocuments) {
	for _, r := range []struct {
		name  string
		check func(*testing.T, func() store.Documents)
	}{
		{"a new store has no documents", checkNoDocument},
		{"a written document can be read", checkDocumentRoundTrip},
		{"a known revision returns no data", checkKnownRevision},
		{"another revision is an error", checkOtherRevision},
		{"one of several concurrent writes succeeds", checkConcurrentWrites},
		{"sizes", checkDocumentSizes},
		{"names", checkDocumentNames},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, at(t)) })
	}
}

func checkNoDocument(t *testing.T, open func() store.Documents) {
	s := open()
	for _, known := range []int64{0, 1} {
		if data, revision, err := s.Document(t.Context(), "none", known); data != nil || revision != 0 || err != nil {
			t.Errorf("Document(none, %d): %q, revision %d, %v; want nothing", known, data, revision, err)
		}
	}
	if _, err := s.SetDocument(t.Context(), "none", []byte("x"), 1); !errors.Is(err, store.ErrRevision) {
		t.Errorf("replacing revision 1 of a missing document: %v, want %v", err, store.ErrRevision)
	}
}

func set(t *testing.T, s store.Documents, name, text string, revision int64) int64 {
	t.Helper()
	next, err := s.SetDocument(t.Context(), name, []byte(text), revision)
	if err != nil || next <= revision {
		t.Fatalf("SetDocument(%s, %.20q, %d): revision %d, %v; want a higher one", name, text, revision, next, err)
	}
	return next
}

func assertDocument(t *testing.T, s store.Documents, name, text string, revision int64) {
	t.Helper()
	data, got, err := s.Document(t.Context(), name, 0)
	if err != nil || data == nil || string(data) != text || got != revision {
		t.Errorf("Document(%s): %.20q (%d bytes), revision %d, %v; want %.20q (%d bytes), revision %d", name, data, len(data), got, err, text, len(text), revision)
	}
}

func checkDocumentRoundTrip(t *testing.T, open func() store.Documents) {
	s := open()
	first := set(t, s, "a", "one\x00\n\xff", 0)
	other := set(t, s, "a_b-9", "other", 0)
	for _, s := range []store.Documents{s, open()} {
		assertDocument(t, s, "a", "one\x00\n\xff", first)
		assertDocument(t, s, "a_b-9", "other", other)
	}
	second := set(t, open(), "a", "", first)
	assertDocument(t, s, "a", "", second)
	assertDocument(t, open(), "a", "", second)

	data := []byte("mine")
	third, err := s.SetDocument(t.Context(), "a", data, second)
	if err != nil {
		t.Fatal(err)
	}
	data[0] = 'x'
	assertDocument(t, s, "a", "mine", third)
}

func checkKnownRevision(t *testing.T, open func() store.Documents) {
	s := open()
	revision := set(t, s, "a", "text", 0)
	if data, got, err := s.Document(t.Context(), "a", revision); data != nil || got != revision || err != nil {
		t.Errorf("Document with its revision known: %q, revision %d, %v; want no data, revision %d", data, got, err, revision)
	}
	if data, got, err := s.Document(t.Context(), "a", revision-1); string(data) != "text" || got != revision || err != nil {
		t.Errorf("Document with another revision known: %q, revision %d, %v; want all", data, got, err)
	}
}

func checkOtherRevision(t *testing.T, open func() store.Documents) {
	s := open()
	first := set(t, s, "a", "one", 0)
	second := set(t, s, "a", "two", first)
	for _, revision := range []int64{0, first, second + 1, -1} {
		if next, err := s.SetDocument(t.Context(), "a", []byte("x"), revision); !errors.Is(err, store.ErrRevision) || next != 0 {
			t.Errorf("replacing revision %d where there is %d: %d, %v; want %v", revision, second, next, err, store.ErrRevision)
		}
	}
	assertDocument(t, s, "a", "two", second)
}

// Concurrent writers append to one document, and no write is lost.
func checkConcurrentWrites(t *testing.T, open func() store.Documents) {
	const writers, each = 8, 5
	revisions := make(chan int64, writers*each)
	var all sync.WaitGroup
	for w := range writers {
		s := open()
		all.Go(func() {
			for done := 0; done < each; {
				data, revision, err := s.Document(t.Context(), "a", -1)
				if err != nil {
					t.Error(err)
					return
				}
				next, err := s.SetDocument(t.Context(), "a", fmt.Appendf(data, "%d ", w), revision)
				switch {
				case err == nil:
					revisions <- next
					done++
				case !errors.Is(err, store.ErrRevision):
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	close(revisions)
	seen := map[int64]bool{}
	for r := range revisions {
		if seen[r] {
			t.Errorf("two writers were told revision %d", r)
		}
		seen[r] = true
	}
	data, _, err := open().Document(t.Context(), "a", 0)
	for w := range writers {
		if got := bytes.Count(data, fmt.Appendf(nil, "%d ", w)); got != each || err != nil {
			t.Errorf("what writer %d added is there %d times, want %d: %q, %v", w, got, each, data, err)
		}
	}
}

func checkDocumentSizes(t *testing.T, open func() store.Documents) {
	s := open()
	most := strings.Repeat("x", store.MaxDocumentBytes)
	revision := set(t, s, "a", most, 0)
	assertDocument(t, open(), "a", most, revision)
	if _, err := s.SetDocument(t.Context(), "a", []byte(most+"x"), revision); !errors.Is(err, store.ErrDocument) {
		t.Errorf("a document of %d bytes: %v, want %v", len(most)+1, err, store.ErrDocument)
	}
	assertDocument(t, s, "a", most, revision)
}

func checkDocumentNames(t *testing.T, open func() store.Documents) {
	s := open()
	for _, name := range []string{"", "A", "a b", "a/b", "a:b", "é", "a\x00", "..", strings.Repeat("a", store.MaxDocumentName+1)} {
		if _, _, err := s.Document(t.Context(), name, 0); !errors.Is(err, store.ErrDocument) {
			t.Errorf("Document(%.20q): %v, want %v", name, err, store.ErrDocument)
		}
		if _, err := s.SetDocument(t.Context(), name, nil, 0); !errors.Is(err, store.ErrDocument) {
			t.Errorf("SetDocument(%.20q): %v, want %v", name, err, store.ErrDocument)
		}
	}
	long := strings.Repeat("a", store.MaxDocumentName)
	assertDocument(t, s, long, "text", set(t, s, long, "text", 0))
}
