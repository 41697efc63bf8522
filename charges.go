// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// bring adds the charges that the request brings to those of the policy. Those
// with one key become one; where it is a key of the policy's, they become part of
// the rule's.
func (s *scratch) bring(req *Request) error {
	sharded := false
	for i := range req.Charges {
		c := req.Charges[i]
		if err := c.check(i); err != nil {
			return err
		}
		if c.Limit.Anchor() == bucket.AnchorKey {
			c.Limit = c.Limit.For(c.Key)
		}
		sharded = sharded || isSharded(c)
		limit, shards, cost := s.known(c.Key)
		if cost == nil {
			s.own = append(s.own, c)
			if s.enforced+len(s.own) > MaxCharges {
				return fmt.Errorf("%w: more than %d charges", ErrRequest, MaxCharges)
			}
			continue
		}
		if limit != c.Limit || max(shards, 1) != max(c.Shards, 1) {
			return fmt.Errorf("%w: charge %d: its key has another limit already", ErrRequest, i)
		}
		if *cost += c.Cost; *cost > bucket.MaxTokens {
			return fmt.Errorf("%w: charge %d: together with others of its key %v tokens: must be at most %v", ErrCost, i, *cost, bucket.MaxTokens)
		}
	}
	if sharded {
		if err := checkShards(s.charge(s.matches[:s.enforced], s.own, nil)); err != nil {
			return fmt.Errorf("%w: %w", ErrRequest, err)
		}
	}
	return nil
}

// check returns what is wrong with c, which is the i'th. It says nothing about the
// key but its length: keys are nobody's business.
func (c *Charge) check(i int) error {
	switch {
	case c.Key == "" || len(c.Key) > MaxKeyBytes:
		return fmt.Errorf("%w: charge %d: a key of %d bytes: must have between 1 and %d", ErrRequest, i, len(c.Key), MaxKeyBytes)
	case c.Limit == bucket.Limit{}:
		return fmt.Errorf("%w: charge %d: no limit: make one with bucket.NewLimit or bucket.Spec", ErrRequest, i)
	case c.Cost < 0 || c.Cost > bucket.MaxTokens:
		return fmt.Errorf("%w: charge %d: %v tokens: must be between 0 and %v", ErrCost, i, c.Cost, bucket.MaxTokens)
	case c.Shards < 0:
		return fmt.Errorf("%w: charge %d: %d shards: must not be below 0", ErrRequest, i, c.Shards)
	case isShardKey(c.Key):
		return fmt.Errorf("%w: charge %d: its key begins with %q or ends with it and a number, as those of shards do", ErrRequest, i, shardMark)
	}
	return nil
}

// known returns the limit that a key is charged under already, and where its
// cost stands; nil where it is not.
func (s *scratch) known(key string) (limit bucket.Limit, shards int, cost *bucket.Tokens) {
	for i := range s.own {
		if c := &s.own[i]; c.Key == key {
			return c.Limit, c.Shards, &c.Cost
		}
	}
	for i := range s.matches[:s.enforced] {
		if m := &s.matches[i]; m.Key == key {
			return m.Limit.Bucket.For(key), m.Limit.Shards, &m.Cost
		}
	}
	return bucket.Limit{}, 0, nil
}

// What decisions show in the place of a rule, and of its limit, where the request
// brought the charge.
var (
	noRule   = &policy.Rule{}
	noLimits = [...]policy.Limit{
		{Reason: "token_bucket_exceeded"},
		{Reason: "fixed_window_exceeded"},
		{Reason: "sliding_window_exceeded"},
		{Reason: "sliding_log_exceeded"},
		{Reason: "leaky_bucket_exceeded"},
	}
)

func noLimit(l *bucket.Limit) *policy.Limit {
	switch n, _ := l.Refill(); {
	case l.Queued():
		return &noLimits[4]
	case l.Algorithm() == bucket.SlidingLog:
		return &noLimits[3]
	case l.Algorithm() == bucket.SlidingWindow:
		return &noLimits[2]
	case l.Algorithm() == bucket.Stepped && n == l.Capacity():
		return &noLimits[1]
	}
	return &noLimits[0]
}

// charge turns matches and own charges into charges as the [Store] wants them:
// in the order of their keys. Rules never share a key, and bring has seen to the
// others, so the keys are distinct. A scale, unless nil, raises their costs.
func (s *scratch) charge(matches []policy.Match, own []Charge, scale func(bucket.Tokens) bucket.Tokens) []Charge {
	s.charges, s.order = s.charges[:0], s.order[:0]
	for i := range len(matches) + len(own) {
		var c Charge
		if i < len(matches) {
			m := &matches[i]
			c = Charge{Key: m.Key, Limit: m.Limit.Bucket, Cost: m.Cost, Shards: m.Limit.Shards, Leased: m.Limit.Leased}
			if c.Limit.Anchor() == bucket.AnchorKey {
				c.Limit = c.Limit.For(c.Key)
			}
		} else {
			c = own[i-len(matches)]
		}
		if scale != nil && c.Cost > 0 {
			c.Cost = scaled(c.Cost, &c.Limit, scale)
		}
		// Insertion: there are rarely more than four.
		at := len(s.charges)
		for at > 0 && strings.Compare(c.Key, s.charges[at-1].Key) < 0 {
			at--
		}
		if at == len(s.charges) { // mostly they are in order
			s.charges, s.order = append(s.charges, c), append(s.order, i)
			continue
		}
		s.charges = slices.Insert(s.charges, at, c)
		s.order = slices.Insert(s.order, at, i)
	}
	return s.charges
}
