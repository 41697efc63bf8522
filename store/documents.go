// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
)

// Documents is a [Store] that also stores small documents with names and revisions. Overrides use it to share
// an admin's changes with all processes. It is safe for concurrent use. A wrapper returns
// [errors.ErrUnsupported] if its inner store has no documents.
//
// Documents do not expire. They are as durable as the store's data on disk.
type Documents interface {
	// Document returns a document and its revision, which is above 0. If the revision equals known, data is
	// nil. If there is no document, data is nil and the revision 0.
	Document(ctx context.Context, name string, known int64) (data []byte, revision int64, err error)

	// SetDocument replaces the document with this revision; 0 creates a new one. It returns the new revision.
	// Revisions of a name never repeat, even after the document was lost, unless the clock runs back. If
	// several callers replace one revision at the same time, one succeeds and the others get [ErrRevision].
	// After any other error, the document may or may not have been written.
	SetDocument(ctx context.Context, name string, data []byte, revision int64) (int64, error)
}

const (
	// MaxDocumentBytes bounds a document of [Documents]. MaxDocumentName bounds its name, which consists of
	// a-z, 0-9, - and _.
	MaxDocumentBytes = 1 << 20
	MaxDocumentName  = 64
)

var (
	// ErrRevision: the document has another revision than the one to replace, because another caller changed it
	// first.
	ErrRevision = errors.New("mete: document was changed meanwhile")

	// ErrDocument: the name or the size of a document is invalid.
	ErrDocument = errors.New("mete: invalid document")
)

// CheckDocument returns an error that wraps [ErrDocument] if the name or the size of data is invalid. Stores
// call it.
func CheckDocument(name string, data []byte) error {
	if name == "" || len(name) > MaxDocumentName {
		return fmt.Errorf("%w: name has %d bytes: must be between 1 and %d bytes", ErrDocument, len(name), MaxDocumentName)
	}
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return fmt.Errorf("%w: name %q: must consist of a-z, 0-9, - and _", ErrDocument, name)
		}
	}
	if len(data) > MaxDocumentBytes {
		return fmt.Errorf("%w: %q has %d bytes: must be at most %d", ErrDocument, name, len(data), MaxDocumentBytes)
	}
	return nil
}
