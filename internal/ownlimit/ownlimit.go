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

// Limit returns the limit that a program gives as a rate and a burst of whole tokens, or as
// a bucket of any algorithm. Both are an error, and so is neither.
func Limit(rate string, burst int, given bucket.Limit) (bucket.Limit, error) {
	short, whole := rate != "" || burst != 0, given != (bucket.Limit{})
	switch {
	case short && whole:
		return bucket.Limit{}, errors.New("rate and burst are set, and bucket too: set only one of the two")
	case whole:
		return given, nil
	case !short:
		return bucket.Limit{}, errors.New(`bucket is required: set rate and burst, as in "100/1m" and 20, or bucket`)
	}
	r, err := bucket.ParseRate(rate)
	if err != nil {
		return bucket.Limit{}, fmt.Errorf("rate %q: %w", rate, err)
	}
	if most := bucket.MaxTokens.Whole(); burst < 1 || int64(burst) > most {
		return bucket.Limit{}, fmt.Errorf("burst %d: must be between 1 and %d, the most requests at one instant", burst, most)
	}
	limit, err := bucket.NewLimit(bucket.Tokens(burst)*bucket.Token, r)
	if err != nil {
		return bucket.Limit{}, fmt.Errorf("rate %q, burst %d: %w", rate, burst, err)
	}
	return limit, nil
}

// Whole returns the tokens of a cost in whole tokens. A cost beyond the bound is a cost that
// [Check] refuses.
func Whole(cost int) bucket.Tokens {
	if most := bucket.MaxTokens.Whole(); int64(cost) > most {
		return bucket.MaxTokens + 1
	}
	return bucket.Tokens(max(cost, -1)) * bucket.Token
}

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
