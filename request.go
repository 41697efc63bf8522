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
}

// Attrs are attributes by name: Attrs{"header:x-api-key": "k1"}.
type Attrs = policy.Map

func (r Request) check() error {
	if r.Cost < 0 || r.Cost > bucket.MaxTokens {
		return fmt.Errorf("%w: %v tokens: must be between 0 (the rule's own) and %v", ErrCost, r.Cost, bucket.MaxTokens)
	}
	return nil
}
