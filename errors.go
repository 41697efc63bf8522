// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"errors"
	"fmt"

	"github.com/metehq/mete/bucket"
)

var (
	// ErrNever: the cost is more than a bucket can ever hold.
	ErrNever = errors.New("mete: cost exceeds what the limit can ever hold")

	// ErrDeadlineTooSoon: the tokens are not there before the context's deadline
	// or within [Request.MaxWait].
	ErrDeadlineTooSoon = errors.New("mete: tokens are not there in time")

	// ErrRefused: a rule refuses the request, and waiting does not help.
	ErrRefused = errors.New("mete: request refused")

	// ErrCost: a cost is negative or above [bucket.MaxTokens].
	ErrCost = errors.New("mete: invalid cost")

	// ErrRequest: a request's ID or one of its charges is invalid.
	ErrRequest = errors.New("mete: invalid request")

	// ErrSettled: a [Reservation] has been settled or canceled already.
	ErrSettled = errors.New("mete: reservation is settled")

	// ErrDebt: more was used than reserved, and that much cannot be owed. The
	// error is a [DebtError].
	ErrDebt = errors.New("mete: more than can be owed")
)

// A DebtError says that [Reservation.Settle] could not charge what was used
// beyond the reservation. It wraps [ErrDebt].
type DebtError struct {
	Rule      string        // whose limit refused; empty where that was none of a rule
	Uncharged bucket.Tokens // what was used and not charged
}

func (e *DebtError) Error() string {
	return fmt.Sprintf("%v: %v tokens were used and not charged", byRule(ErrDebt, e.Rule), e.Uncharged)
}

func (e *DebtError) Unwrap() error { return ErrDebt }

// ended says why ctx is done: always in the terms of package context, since a
// cause alone would look like an error of this package's own.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// byRule adds the name of the rule that is the reason. Limits that requests bring
// have none.
func byRule(err error, rule string) error {
	if rule == "" {
		return err
	}
	return fmt.Errorf("%w: rule %q", err, rule)
}
