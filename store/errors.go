// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"os"
)

var (
	// ErrRequired: a required store is nil.
	ErrRequired = errors.New("mete: a store is required")

	// ErrNoSecret: the store has no secret for its processes: see [KeyDeriver].
	ErrNoSecret = errors.New("mete: store has no secret")

	// ErrUnavailable: the store was not called because it recently failed.
	ErrUnavailable = errors.New("mete: store is unavailable")

	// ErrOverloaded: too many requests are waiting for the store.
	ErrOverloaded = errors.New("mete: too many requests are waiting for the store")

	// ErrTransaction: the database has aborted the caller's transaction. The store itself may be healthy.
	ErrTransaction = errors.New("mete: transaction failed")
)

// A Spending reports whether a failed store call may have spent tokens.
type Spending uint8

const (
	MaybeSpent Spending = iota // the call reached the store, but its answer was lost
	NotSpent                   // the call did not reach the store
)

// An Error is a failed call of a [Store].
type Error struct {
	Op    string // "take", "refund", "reset"
	Store string // "memstore"
	Spent Spending
	Err   error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s: %v", e.Store, e.Op, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Spent reports whether the call that returned err may have spent tokens. It returns [MaybeSpent] for nil and
// for errors without that information.
func Spent(err error) Spending {
	var e *Error
	if errors.As(err, &e) {
		return e.Spent
	}
	return MaybeSpent
}

// A Failure classifies a store error in one word, for labels, logs and clients.
type Failure string

// The known failures. More may follow.
const (
	FailureTimeout     Failure = "timeout"     // no answer within the deadline
	FailureUnavailable Failure = "unavailable" // not called: see [ErrUnavailable]
	FailureOverloaded  Failure = "overloaded"  // too many waiting requests: see [ErrOverloaded]
	FailureError       Failure = "error"       // unreachable, or answered with an error
)

// FailureOf classifies an error of a store.
func FailureOf(err error) Failure {
	switch {
	case errors.Is(err, ErrUnavailable):
		return FailureUnavailable
	case errors.Is(err, ErrOverloaded):
		return FailureOverloaded
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return FailureTimeout
	}
	return FailureError
}
