// SPDX-License-Identifier: Apache-2.0

// Package sharedkey verifies that all processes of a shared store hash parts of bucket keys with the same key. It
// keeps the key's identifier in the store. A process with a different key would use separate, full buckets.
package sharedkey

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// Document is the name of the document with the identifier.
const Document = "hash-key"

// derived replaces the identifier of a key that the store derives from its own secret. If the store loses the
// secret, it creates a new one, so a fixed identifier could never match again.
const derived = "derived from the secret of the store"

// A Store keeps a secret and documents for the processes that share it.
type Store interface {
	DeriveKey(ctx context.Context, purpose string) ([sha256.Size]byte, error)
	Document(ctx context.Context, name string, known int64) (data []byte, revision int64, err error)
	SetDocument(ctx context.Context, name string, data []byte, revision int64) (int64, error)
}

// Check returns nil if the store's processes use the key with this identifier (see [policy.Matcher.HashKeyID]),
// or if this is the first check. Otherwise the error wraps [policy.ErrHashKey]. A policy without hashes has an
// empty identifier, which is always accepted. The error ends with remove, which tells an admin how to delete the
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
	// A process with a configured key may lack access to the store's secret. It needs the secret only to detect
	// that both keys are equal.
	own, err := s.DeriveKey(ctx, policy.HashPurpose)
	if err == nil && id == policy.HashKeyID(own[:]) {
		id = derived
	}
	theirs := string(known)
	if revision == 0 {
		if theirs, err = claim(ctx, s, id); err != nil {
			return err
		}
	}
	if theirs != id {
		return fmt.Errorf("%w: the other processes use %s, this process uses %s: set the same policy.Options.HashKey in all processes or in none, or use a different prefix; "+
			"to change the key, stop all processes and %s; all buckets then start full",
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

// claim stores the identifier if none is stored, and returns the stored one.
func claim(ctx context.Context, s Store, id string) (string, error) {
	_, err := s.SetDocument(ctx, Document, []byte(id), 0)
	if errors.Is(err, store.ErrRevision) { // another process was first
		data, _, err := s.Document(ctx, Document, 0)
		return string(data), err
	}
	return id, err
}
