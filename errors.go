// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"errors"
	"fmt"
)

var (
	// ErrNever: the cost is more than a bucket can ever hold.
	ErrNever = errors.New("mete: cost exceeds what the limit can ever hold")

	// ErrDeadlineTooSoon: the wait would end after the context's deadline.
	ErrDeadlineTooSoon = errors.New("mete: context deadline is before the tokens are there")

	// ErrRefused: a rule refuses the request, and waiting does not help.
	ErrRefused = errors.New("mete: request refused")

	// ErrTooManyLimits: a request falls under more than [MaxCharges] limits.
	ErrTooManyLimits = errors.New("mete: request falls under too many limits")

	// ErrCost: a request's cost is negative or above [bucket.MaxTokens].
	ErrCost = errors.New("mete: invalid cost")
)

// Spent says whether a failed store call may have spent tokens.
type Spent uint8

const (
	MaybeSpent Spent = iota // the store was asked, and its answer was lost
	NotSpent                // nothing reached the store
)

// A StoreError is the failure of a [Store].
type StoreError struct {
	Op    string // "take", "refund", "reset"
	Store string // "memstore"
	Spent Spent
	Err   error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("%s: %s: %v", e.Store, e.Op, e.Err)
}

func (e *StoreError) Unwrap() error { return e.Err }

// Spending says whether the call that returned err may have spent tokens. An
// error that does not say is taken as [MaybeSpent]; nil is, too.
func Spending(err error) Spent {
	var se *StoreError
	if errors.As(err, &se) {
		return se.Spent
	}
	return MaybeSpent
}
