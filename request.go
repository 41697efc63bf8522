// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// A Request asks whether something may happen now.
type Request struct {
	// Attributes are the facts the policy matches and keys by. Nil has none.
	Attributes policy.Attributes

	// Cost, where above 0, takes the place of the cost the policy's rules say.
	Cost bucket.Tokens

	// MaxWait, where above 0, reserves: tokens that are refilled within it are
	// spent now, and [Decision.Wait] says when the work may start.
	MaxWait time.Duration

	// Charges are what the request costs besides what the policy says, each with
	// a key and a limit of its own: all of it is taken or nothing. The keys are at
	// most [MaxKeyBytes] long; a key that occurs twice, with one limit, is charged
	// with the sum. Cost does not apply to them.
	Charges []Charge

	// ID, if not empty, is the same for every attempt at one request, and no other:
	// see [Mode.ID]. What was admitted is not charged twice.
	ID string
}

// Attrs are attributes by name: Attrs{"header:x-api-key": "k1"}.
type Attrs = policy.Map

func (r Request) check() error {
	if r.Cost < 0 || r.Cost > bucket.MaxTokens {
		return fmt.Errorf("%w: %v tokens: must be between 0 (the rule's own) and %v", ErrCost, r.Cost, bucket.MaxTokens)
	}
	return nil
}
