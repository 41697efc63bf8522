// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"errors"
	"fmt"
)

var (
	// ErrNever: the cost is more than a bucket can ever hold.
	ErrNever = errors.New("mete: cost exceeds what the limit can ever hold")

	// ErrDeadlineTooSoon: the tokens are not there before the context's deadline
	// or within [Request.MaxWait].
	ErrDeadlineTooSoon = errors.New("mete: tokens are not there in time")

	// ErrRefused: a rule refuses the request, and waiting does not help.
	ErrRefused = errors.New("mete: request refused")

	// ErrCost: a request's cost is negative or above [bucket.MaxTokens].
	ErrCost = errors.New("mete: invalid cost")
)

// Spending says whether a failed store call may have spent tokens.
type Spending uint8

const (
	MaybeSpent Spending = iota // the store was asked, and its answer was lost
	NotSpent                   // nothing reached the store
)

// A StoreError is the failure of a [Store].
type StoreError struct {
	Op    string // "take", "refund", "reset"
	Store string // "memstore"
	Spent Spending
	Err   error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("%s: %s: %v", e.Store, e.Op, e.Err)
}

func (e *StoreError) Unwrap() error { return e.Err }

// Spent says whether the call that returned err may have spent tokens. An
// error that does not say is taken as [MaybeSpent]; nil is, too.
func Spent(err error) Spending {
	var se *StoreError
	if errors.As(err, &se) {
		return se.Spent
	}
	return MaybeSpent
}
