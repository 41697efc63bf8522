// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/sha256"
)

// A Pinger is a [Store] with a health check.
type Pinger interface {
	Ping(ctx context.Context) error
}

// A KeyDeriver is a [Store] with a secret for all processes that share it. The secret lives as long as the buckets.
// A limiter derives the key of its hashes in bucket keys from this secret, unless its policy has a key.
type KeyDeriver interface {
	// DeriveKey returns the key for a purpose. It is the same in all processes that share the store.
	DeriveKey(ctx context.Context, purpose string) ([sha256.Size]byte, error)
}

// A KeyChecker is a [Store] that knows the hash key of its other processes. A process with another key would
// have separate, full buckets.
type KeyChecker interface {
	// CheckHashKey returns an error that wraps policy.ErrHashKey if id differs from the identifier of the
	// store's hash key. A process without hashes has an empty identifier.
	CheckHashKey(ctx context.Context, id string) error
}

// A Transactional store can execute a take in its caller's transaction. The answer to such a take proves
// nothing about the buckets, because the caller may roll it back.
type Transactional interface {
	// InTransaction reports whether a take with ctx runs in a transaction that its caller may still roll back.
	InTransaction(ctx context.Context) bool
}

// A Partial store executes a take of several buckets in parts, one after another.
type Partial interface {
	// TakesInParts reports whether a part of a take can succeed while its answer is lost and the store undoes
	// the earlier parts.
	TakesInParts() bool
}

// TakesInParts reports whether s, or a store that it wraps, is a [Partial] one.
func TakesInParts(s Store) bool {
	p, ok := As[Partial](s)
	return ok && p.TakesInParts()
}

// A Wrapper is a store around another one. [As] also searches the inner store.
type Wrapper interface{ Unwrap() Store }

// As returns the first store that implements T among s and the stores that it wraps.
func As[T any](s Store) (found T, ok bool) {
	for s != nil {
		if found, ok = s.(T); ok {
			return found, true
		}
		w, wraps := s.(Wrapper)
		if !wraps {
			break
		}
		s = w.Unwrap()
	}
	return found, false
}
