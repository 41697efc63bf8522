// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/shards"
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

// A Charge is one of [Request.Charges]: a cost, and the bucket that is to pay it.
type Charge struct {
	Key   string
	Limit bucket.Limit

	// Cost in tokens: 3 is three tokens. 0 spends nothing, and is denied only while
	// something is owed. At most [bucket.MaxTokens].
	Cost Tokens

	// Shards, above 1, splits the bucket over so many keys.
	Shards int

	// Fixed keeps the cost as it is when a reservation is settled: for what a request
	// costs whatever comes of it.
	Fixed bool

	// Leased lets the store spend from tokens that it took from the bucket in advance: see
	// package redisstore. Bounds hold all the same.
	Leased bool
}

// check returns the cost of c, which is the i'th charge of a request, and reports what is
// wrong with c. It says nothing about the key but its length, because a key may name a
// client.
func (c *Charge) check(i int) (bucket.Tokens, error) {
	cost, ok := c.Cost.count()
	switch {
	case c.Key == "" || len(c.Key) > store.MaxKeyBytes:
		return 0, fmt.Errorf("%w: charge %d: a key of %d bytes: must have between 1 and %d", ErrRequest, i, len(c.Key), store.MaxKeyBytes)
	case c.Limit == bucket.Limit{}:
		return 0, fmt.Errorf("%w: charge %d: no limit: make one with bucket.NewLimit or bucket.Spec", ErrRequest, i)
	case !ok:
		return 0, fmt.Errorf("%w: charge %d: %v tokens: must be between 0 and %v, in steps of 0.001", ErrCost, i, c.Cost, bucket.MaxTokens)
	case c.Shards < 0:
		return 0, fmt.Errorf("%w: charge %d: %d shards: must not be below 0", ErrRequest, i, c.Shards)
	case shards.IsKey(c.Key):
		return 0, fmt.Errorf("%w: charge %d: its key begins with %q or ends with it and a number, as those of shards do", ErrRequest, i, shards.Mark)
	}
	return cost, nil
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
