// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"errors"
	"os"
)

// A Failure says in a word why a store had no part in a decision: for labels,
// logs and clients, who need no more. [Decision.Err] says all of it.
type Failure string

// The failures there are. More may come.
const (
	FailureTimeout     Failure = "timeout"     // it did not answer within the deadline
	FailureUnavailable Failure = "unavailable" // it was not asked: see [ErrUnavailable]
	FailureOverloaded  Failure = "overloaded"  // too many are asking: see [ErrOverloaded]
	FailureError       Failure = "error"       // it could not be reached, or answered with an error
)

// failureOf names the failure that err tells of.
func failureOf(err error) Failure {
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
