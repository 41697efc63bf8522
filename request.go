// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/shards"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A Request describes an event to be decided now.
type Request struct {
	// Attributes are the facts that the policy matches and builds keys from. Nil means none.
	Attributes policy.Attributes

	// Cost, if above 0, replaces the cost of the policy's rules, in tokens. It is at most [bucket.MaxTokens].
	Cost Tokens

	// Parts, if not empty, are the events of the request in place of Attributes and Cost, which must be empty. The
	// policy applies to each part as to a request of its own. All limits of all parts are one take: the request
	// pays all of them or none. At most [MaxParts].
	//
	// If several parts are charged to one bucket, their costs add up. [Limiter.TakeUpTo] bounds the amount of each
	// bucket by the emptiest one. A block or a missing attribute of one part denies the request. An override that
	// allows a part, such as a break glass, exempts only this part. [Status.HasPart] and [Decision.Part] relate a
	// decision to its parts. [Limiter.Explain] rejects parts.
	Parts []Part

	// MaxWait, if above 0, allows a reservation. The request may spend tokens that refill within MaxWait, and
	// [Decision.Wait] is the time until its work may start. Negative values mean 0.
	MaxWait time.Duration

	// Charges are costs in addition to the policy's, each with its own key and limit. The request pays all of
	// its charges and rules or none. Keys have 1 to [store.MaxKeyBytes] bytes and may come in any order.
	// Charges with the same key must have the same limit, and their costs add up. Cost does not apply to them.
	// To keep keys apart from the policy's keys, start them with a prefix that is not the name of a limit.
	Charges []Charge

	// ID, if not empty, identifies the request across its retries: see [Mode.ID]. An admitted request is not
	// charged again. The order of Charges and of the policy's rules does not matter. A retry with different
	// keys or costs, or with another method, counts as a new request. The ID is printable ASCII of at most
	// [store.MaxIDBytes] bytes.
	ID string

	// Slot, if not zero, identifies the slots of the request in place of a random ID: see [Slots.ID]. A request that already
	// holds them, such as a further message of a stream, keeps them, and their leases start again. It must be unguessable.
	Slot bucket.SlotID
}

// MaxParts bounds [Request.Parts].
const MaxParts = 64

// A Part is one of [Request.Parts]: an event with attributes and a cost of its own.
type Part struct {
	// Attributes are as in [Request].
	Attributes policy.Attributes

	// Cost, if above 0, replaces the cost of the policy's rules for this part, as in [Request].
	Cost Tokens

	// Look makes the part cost nothing. A limit denies it only while the bucket is in debt. Cost must be 0.
	Look bool
}

// A Charge is one of [Request.Charges]: a cost and the bucket that pays it.
type Charge struct {
	Key   string
	Limit bucket.Limit

	// Cost is in tokens, at most [bucket.MaxTokens]. A cost of 0 spends nothing, and is denied only while the
	// bucket is in debt.
	Cost Tokens

	// Shards, if above 1, splits the bucket over this many keys.
	Shards int

	// Penalty, if not nil, lengthens denials by the limit: see [bucket.Penalty]. Do not combine it with Shards or Leased.
	Penalty *bucket.Penalty

	// Fixed excludes the cost from [Reservation.Settle].
	Fixed bool

	// Leased allows the store to take tokens from the bucket in advance: see package redisstore. The limit's
	// bound still holds.
	Leased bool
}

// check validates c, the i-th charge of a request, and returns its cost. Errors omit the key because it may
// identify a client.
func (c *Charge) check(i int) (bucket.Tokens, error) {
	cost, ok := c.Cost.count()
	switch {
	case c.Key == "" || len(c.Key) > store.MaxKeyBytes:
		return 0, fmt.Errorf("%w: charge %d: a key of %d bytes: must be between 1 and %d bytes", ErrRequest, i, len(c.Key), store.MaxKeyBytes)
	case c.Limit == bucket.Limit{}:
		return 0, fmt.Errorf("%w: charge %d: no limit: create one with bucket.NewLimit or bucket.Spec", ErrRequest, i)
	case !ok:
		return 0, fmt.Errorf("%w: charge %d: %v tokens: must be between 0 and %v, in steps of 0.001", ErrCost, i, c.Cost, bucket.MaxTokens)
	case c.Shards < 0:
		return 0, fmt.Errorf("%w: charge %d: %d shards: must not be below 0", ErrRequest, i, c.Shards)
	case strings.HasSuffix(c.Key, store.PenaltyMark):
		return 0, fmt.Errorf("%w: charge %d: the key ends with %q: that form is reserved for penalties", ErrRequest, i, store.PenaltyMark)
	case c.Penalty != nil && (c.Shards > 1 || c.Leased):
		return 0, fmt.Errorf("%w: charge %d: a penalty needs one bucket in the store: remove Shards and Leased", ErrRequest, i)
	case shards.IsKey(c.Key):
		return 0, fmt.Errorf("%w: charge %d: the key begins with %q, or ends with it and a number: that form is reserved for shards", ErrRequest, i, shards.Mark)
	}
	return cost, nil
}

// Attrs maps names to attributes: Attrs{"header:x-api-key": "k1"}.
type Attrs = policy.Map

// check validates r without its charges, and returns its cost.
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
