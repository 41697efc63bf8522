// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/sha256"
)

// A Pinger is a [Store] that can say whether it is able to answer.
type Pinger interface {
	Ping(ctx context.Context) error
}

// A KeyDeriver is a [Store] that keeps a secret for all processes that share it. The
// secret lasts as long as the buckets do. A limiter hashes parts of bucket keys with a
// key that it derives from this secret, unless its policy has a key of its own.
type KeyDeriver interface {
	// DeriveKey returns the key for a purpose. It is the same in each process that shares
	// the store.
	DeriveKey(ctx context.Context, purpose string) ([sha256.Size]byte, error)
}

// A KeyChecker is a [Store] that knows by which key the processes that share it hash parts
// of bucket keys. With another key, a process would have full buckets of its own.
type KeyChecker interface {
	// CheckHashKey returns an error that wraps policy.ErrHashKey if the key with this
	// identifier is another one. An empty identifier is of a process that hashes nothing.
	CheckHashKey(ctx context.Context, id string) error
}

// A Transactional store can make a take a part of its caller's transaction. The answer to
// such a take is no knowledge about the buckets, because the caller may roll it back.
type Transactional interface {
	// InTransaction reports whether the store charges a take with ctx in a transaction
	// that its caller may still roll back.
	InTransaction(ctx context.Context) bool
}

// A Partial store makes a take of several buckets in parts, one after another.
type Partial interface {
	// TakesInParts reports whether a part of a take can be made and its answer be lost,
	// while the store undoes the parts before it.
	TakesInParts() bool
}

// TakesInParts reports whether s, or a store that it wraps, is a [Partial] one.
func TakesInParts(s Store) bool {
	p, ok := As[Partial](s)
	return ok && p.TakesInParts()
}

// A Wrapper is a store around another one. [As] looks for a method in the inner store if
// the outer one does not have it.
type Wrapper interface{ Unwrap() Store }

// As returns the first of s and of the stores that it wraps that is a T.
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
