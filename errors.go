// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"errors"
	"fmt"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

var (
	// ErrNever: the cost exceeds the capacity of the bucket.
	ErrNever = errors.New("mete: cost exceeds the capacity of the limit")

	// ErrDeadlineTooSoon: the wait for tokens exceeds the context's deadline or [Request.MaxWait].
	ErrDeadlineTooSoon = errors.New("mete: tokens are not available in time")

	// ErrRefused: a rule denies the request, and waiting does not help.
	ErrRefused = errors.New("mete: request refused")

	// ErrCost: a cost is negative, above [bucket.MaxTokens], or finer than a thousandth of a token.
	ErrCost = errors.New("mete: invalid cost")

	// ErrRequest: a request's ID or one of its charges is invalid.
	ErrRequest = errors.New("mete: invalid request")

	// ErrSettled: the [Reservation] is already settled or canceled.
	ErrSettled = errors.New("mete: reservation already settled or canceled")

	// ErrDebt: the excess over a reservation or a hold exceeds the debt that a limit allows. For a reservation, the
	// error is a [DebtError].
	ErrDebt = errors.New("mete: debt exceeds the limit")
)

// A DebtError reports that [Reservation.Settle] could not charge the excess over the reservation. It wraps
// [ErrDebt].
type DebtError struct {
	Rule      string        // the rule of the refusing limit; empty for a limit of the request
	Uncharged bucket.Tokens // the part of the usage that was not charged
}

func (e *DebtError) Error() string {
	return fmt.Sprintf("%v: %v tokens were used but not charged", addRule(ErrDebt, e.Rule), e.Uncharged)
}

func (e *DebtError) Unwrap() error { return ErrDebt }

// contextError returns ctx's error together with its cause. A cause alone could look like an error of this package.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func addRule(err error, rule string) error {
	if rule == "" {
		return err
	}
	return fmt.Errorf("%w: rule %q", err, rule)
}

// isHoldRefusal reports whether a store refused a hold for a reason of the caller, so that on_store_error does not apply.
func isHoldRefusal(err error) bool {
	for _, one := range [...]error{store.ErrHold, store.ErrHoldKeys, store.ErrHoldEnded, store.ErrTooManyHolds, store.ErrNoSecret, errors.ErrUnsupported} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}
