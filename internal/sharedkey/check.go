// SPDX-License-Identifier: Apache-2.0

// Package sharedkey keeps, in a shared store, the identifier of the key that its processes
// hash parts of bucket keys with. A process with another key would have full buckets of
// its own.
package sharedkey

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// Document is the name of the document that has the identifier.
const Document = "hash-key"

// derived stands for the key that the store derives from its own secret. A store that
// lost the secret makes another one: no process could be given the old one again.
const derived = "derived from the secret of the store"

// A Store keeps a secret and documents for the processes that share it.
type Store interface {
	DeriveKey(ctx context.Context, purpose string) ([sha256.Size]byte, error)
	Document(ctx context.Context, name string, known int64) (data []byte, revision int64, err error)
	SetDocument(ctx context.Context, name string, data []byte, revision int64) (int64, error)
}

// Check returns nil if the store's processes use the key with this identifier, as
// [policy.Matcher.HashKeyID] returns it, or if no process has checked before. Else the
// error wraps [policy.ErrHashKey]. An empty identifier belongs to a policy that hashes
// nothing. The error ends with remove, which tells an administrator how to delete the
// document.
func Check(ctx context.Context, s Store, id, remove string) error {
	if id == "" {
		return nil
	}
	known, revision, err := s.Document(ctx, Document, 0)
	if err != nil {
		return err
	}
	if revision != 0 && string(known) == id {
		return nil
	}
	// A process with a key of its own may have no right to the store's secret. It needs the
	// secret only to learn that the two are the same key.
	own, err := s.DeriveKey(ctx, policy.HashPurpose)
	if err == nil && id == policy.HashKeyID(own[:]) {
		id = derived
	}
	theirs := string(known)
	if revision == 0 {
		if theirs, err = first(ctx, s, id); err != nil {
			return err
		}
	}
	if theirs != id {
		return fmt.Errorf("%w: theirs is %s, the one of this process is %s: set the same policy.Options.HashKey in all processes, or in none, or give this one another prefix; "+
			"to change the key, stop them all and %s, and all buckets start full",
			policy.ErrHashKey, describe(theirs), describe(id), remove)
	}
	return nil
}

func describe(id string) string {
	if id == derived {
		return derived
	}
	return fmt.Sprintf("a configured one with the identifier %.64q", id)
}

// first returns the identifier that a process wrote first: this one, if there is none yet.
func first(ctx context.Context, s Store, id string) (string, error) {
	_, err := s.SetDocument(ctx, Document, []byte(id), 0)
	if errors.Is(err, store.ErrRevision) { // another process was first
		data, _, err := s.Document(ctx, Document, 0)
		return string(data), err
	}
	return id, err
}
