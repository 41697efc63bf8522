// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A Request asks whether something may happen now.
type Request struct {
	// Attributes are the facts the policy matches and keys by. Nil has none.
	Attributes policy.Attributes

	// Cost, where above 0, takes the place of the cost the policy's rules say: 3 is three
	// tokens. At most [bucket.MaxTokens].
	Cost Tokens

	// MaxWait, where above 0, reserves: tokens that are refilled within it are
	// spent now, and [Decision.Wait] says when the work may start. Below 0 it is 0.
	MaxWait time.Duration

	// Charges are what the request costs besides what the policy says, each with
	// a key and a limit of its own: all of it is taken or nothing. Keys are between
	// 1 and [store.MaxKeyBytes] bytes long, in no order; a key that occurs twice, with
	// one limit, is charged with the sum. Cost does not apply to them. A program
	// whose charges and whose policy shall not meet gives its keys a prefix that
	// no limit is named by.
	Charges []Charge

	// ID, if not empty, is the same for every attempt at one request, and no other:
	// see [Mode.ID]. What was admitted is not charged twice. The order of Charges, or of
	// the policy's rules, makes no difference. A request with other keys or costs is
	// another one, and so is a take of another kind. It is printable ASCII, at most
	// [store.MaxIDBytes] long.
	ID string
}

// Attrs are attributes by name: Attrs{"header:x-api-key": "k1"}.
type Attrs = policy.Map

// check returns the cost of r, and reports what is wrong with r, but for its charges.
func (r *Request) check() (bucket.Tokens, error) {
	cost, ok := bucket.Tokens(0), true
	if r.Cost != 0 {
		cost, ok = r.Cost.count()
	}
	if !ok {
		return 0, fmt.Errorf("%w: %v tokens: must be a multiple of 0.001 between 0 (the rule's own) and %v", ErrCost, r.Cost, bucket.MaxTokens)
	}
	if len(r.ID) > store.MaxIDBytes {
		return 0, fmt.Errorf("%w: an ID of %d bytes: must be at most %d", ErrRequest, len(r.ID), store.MaxIDBytes)
	}
	for i := range len(r.ID) {
		if c := r.ID[i]; c < ' ' || c > '~' {
			return 0, fmt.Errorf("%w: ID %q: must be printable ASCII", ErrRequest, r.ID)
		}
	}
	return cost, nil
}
