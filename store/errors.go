// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"os"
)

var (
	// ErrRequired: there is no store where one is required.
	ErrRequired = errors.New("mete: a store is required")

	// ErrNoSecret: a store keeps no secret for the processes that share it: see [KeyDeriver].
	ErrNoSecret = errors.New("mete: the store keeps no secret")

	// ErrUnavailable: a store is known not to answer, and was not asked.
	ErrUnavailable = errors.New("mete: store is unavailable")

	// ErrOverloaded: more is waiting for a store than may.
	ErrOverloaded = errors.New("mete: too many requests are waiting for the store")

	// ErrTransaction: the database has ended the caller's transaction that a take was
	// to be a part of. It says nothing about the store.
	ErrTransaction = errors.New("mete: the transaction has failed")
)

// Spending says whether a failed store call may have spent tokens.
type Spending uint8

const (
	MaybeSpent Spending = iota // the store was asked, and its answer was lost
	NotSpent                   // nothing reached the store
)

// An Error is the failure of a [Store].
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

// Spent says whether the call that returned err may have spent tokens. An
// error that does not say is taken as [MaybeSpent]; nil is, too.
func Spent(err error) Spending {
	var e *Error
	if errors.As(err, &e) {
		return e.Spent
	}
	return MaybeSpent
}

// A Failure names in one word why a store did not answer: for labels, logs and
// clients. The error itself has the details.
type Failure string

// The failures there are. More may come.
const (
	FailureTimeout     Failure = "timeout"     // it did not answer within the deadline
	FailureUnavailable Failure = "unavailable" // it was not asked: see [ErrUnavailable]
	FailureOverloaded  Failure = "overloaded"  // too many are asking: see [ErrOverloaded]
	FailureError       Failure = "error"       // it could not be reached, or answered with an error
)

// FailureOf returns the failure that an error of a store is.
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
