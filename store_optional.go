// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"crypto/sha256"
)

// A KeyDeriver is a [Store] that keeps a secret for all processes that share it. The
// secret lasts as long as the buckets do. A [Limiter] hashes parts of bucket keys with a
// key that it derives from this secret, unless the policy has a
// [policy.Options.HashKey].
type KeyDeriver interface {
	// DeriveKey returns the key for a purpose. It is the same in each process that shares
	// the store.
	DeriveKey(ctx context.Context, purpose string) ([sha256.Size]byte, error)
}

// A transactional store can make a take a part of its caller's transaction.
type transactional interface {
	// InTransaction reports whether the store charges a take with ctx in a transaction
	// that its caller may still roll back.
	InTransaction(ctx context.Context) bool
}

// A partial store makes a take of several buckets in parts, one after another.
type partial interface {
	// TakesInParts reports whether a part of a take can be made and its answer be lost,
	// while the store undoes the parts before it.
	TakesInParts() bool
}

// takesInParts reports whether s, or a store that it wraps, is a partial one.
func takesInParts(s Store) bool {
	p, ok := as[partial](s)
	return ok && p.TakesInParts()
}

// A wrapper is a store around another one.
type wrapper interface{ Unwrap() Store }

// as returns the first of s and of the stores that it wraps that is a T.
func as[T any](s Store) (found T, ok bool) {
	for s != nil {
		if found, ok = s.(T); ok {
			return found, true
		}
		w, wraps := s.(wrapper)
		if !wraps {
			break
		}
		s = w.Unwrap()
	}
	return found, false
}

// tentative reports whether what the store decides with ctx may be rolled back: then it
// is no knowledge about the buckets.
func (l *Limiter) tentative(ctx context.Context) bool {
	return l.joins != nil && l.joins.InTransaction(ctx)
}
