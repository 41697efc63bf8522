// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
)

// Documents is a [Store] that also keeps small documents, each under a name and
// with a revision: what an administrator decides while the limiter runs, for all
// processes that share the store. It is safe for concurrent use. A store around
// another one returns [errors.ErrUnsupported] where that one keeps none.
//
// Documents do not expire. They last as long as what the store keeps on disk, and
// are lost with it.
type Documents interface {
	// Document returns the document of that name and its revision, which is above
	// 0. Where the revision is the one that is known there is no need for data, and
	// it is nil. Where there is no document, data is nil and the revision 0.
	Document(ctx context.Context, name string, known int64) (data []byte, revision int64, err error)

	// SetDocument writes a document in the place of the one with that revision; 0
	// is for a document that is not there yet. It returns the new revision, which no
	// document of this name had before, also if it was lost meanwhile, as long as
	// clocks do not run back. Of several that replace one revision at once, one
	// succeeds, and the others fail with [ErrRevision].
	//
	// After any other error the document may have been written or not.
	SetDocument(ctx context.Context, name string, data []byte, revision int64) (int64, error)
}

const (
	// MaxDocumentBytes bounds a document of [Documents], and MaxDocumentName its
	// name, which is made of a-z, 0-9, - and _. What is longer is refused.
	MaxDocumentBytes = 1 << 20
	MaxDocumentName  = 64
)

var (
	// ErrRevision: a document has another revision than the one to be replaced:
	// somebody else was faster.
	ErrRevision = errors.New("mete: the document has another revision")

	// ErrDocument: the name or the size of a document is invalid.
	ErrDocument = errors.New("mete: invalid document")
)

// CheckDocument returns an error that wraps [ErrDocument] if a document can have
// no such name, or not so much data. Stores call it.
func CheckDocument(name string, data []byte) error {
	if name == "" || len(name) > MaxDocumentName {
		return fmt.Errorf("%w: a name of %d bytes: must have between 1 and %d", ErrDocument, len(name), MaxDocumentName)
	}
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return fmt.Errorf("%w: name %q: must be made of a-z, 0-9, - and _", ErrDocument, name)
		}
	}
	if len(data) > MaxDocumentBytes {
		return fmt.Errorf("%w: %q has %d bytes, the most is %d", ErrDocument, name, len(data), MaxDocumentBytes)
	}
	return nil
}
