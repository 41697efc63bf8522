// SPDX-License-Identifier: Apache-2.0

// Package ownlimit is about the limits that programs bring to a door themselves,
// beside those of a policy: it says of them what a policy's compiler and its rules
// would.
package ownlimit

import (
	"errors"
	"fmt"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// Check returns every mistake in a limit of which each request takes that cost, 0
// for one token, over so many shards: whatever would else make every request fail.
func Check(l bucket.Limit, cost bucket.Tokens, shards int) error {
	var errs []error
	cost = Cost(cost)
	badCost := cost < 0 || cost > bucket.MaxTokens
	if badCost {
		errs = append(errs, fmt.Errorf("cost %v: must be between 0 (one token) and %v", cost, bucket.MaxTokens))
	}
	badShards := shards < 0 || shards > policy.MaxShards
	if badShards {
		errs = append(errs, fmt.Errorf("%d shards: must be between 0 and %d", shards, policy.MaxShards))
	}
	if l == (bucket.Limit{}) {
		return errors.Join(append(errs, errors.New("bucket is required"))...)
	}
	if !badCost {
		if _, snap := l.Take(bucket.State{}, 0, cost); snap.RetryAfter == bucket.Never {
			errs = append(errs, fmt.Errorf("cost %v: more than %v can ever admit", cost, l))
		}
	}
	if !badShards && shards > 1 {
		if _, err := l.Shard(0, shards); err != nil { // the largest
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Cost is what a request costs where its limit says cost.
func Cost(cost bucket.Tokens) bucket.Tokens {
	if cost == 0 {
		return bucket.Token
	}
	return cost
}

// Reason is what denials of l give as their reason.
func Reason(l bucket.Limit) string {
	switch n, _ := l.Refill(); {
	case l.Queued():
		return "leaky_bucket_exceeded"
	case l.Algorithm() == bucket.SlidingWindow:
		return "sliding_window_exceeded"
	case l.Algorithm() == bucket.SlidingLog:
		return "sliding_log_exceeded"
	case l.Algorithm() == bucket.Stepped && n == l.Capacity():
		return "fixed_window_exceeded"
	}
	return "token_bucket_exceeded"
}
