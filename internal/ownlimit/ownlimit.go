// SPDX-License-Identifier: Apache-2.0

// Package ownlimit validates limits that programs pass in code, with the checks that a policy's compiler
// applies to rules.
package ownlimit

import (
	"errors"
	"fmt"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// Limit returns the limit for a rate and a burst of whole tokens, or the given bucket. Setting both or neither
// is an error.
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
		return bucket.Limit{}, fmt.Errorf("burst %d: must be between 1 and %d, the maximum number of simultaneous requests", burst, most)
	}
	limit, err := bucket.NewLimit(bucket.Tokens(burst)*bucket.Token, r)
	if err != nil {
		return bucket.Limit{}, fmt.Errorf("rate %q, burst %d: %w", rate, burst, err)
	}
	return limit, nil
}

// Whole converts a cost in whole tokens. A cost above [bucket.MaxTokens] becomes one that [Check] rejects.
func Whole(cost int) bucket.Tokens {
	if most := bucket.MaxTokens.Whole(); int64(cost) > most {
		return bucket.MaxTokens + 1
	}
	return bucket.Tokens(max(cost, -1)) * bucket.Token
}

// Check returns all errors in a limit, the cost per request (0 for one token) and the number of shards. Any of
// them would make every request fail.
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
			errs = append(errs, fmt.Errorf("cost %v: more than the limit (%v) can ever admit", cost, l))
		}
	}
	if !badShards && shards > 1 {
		if _, err := l.Shard(0, shards); err != nil { // shard 0 is the largest
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Cost returns the cost of a request. 0 means one token.
func Cost(cost bucket.Tokens) bucket.Tokens {
	if cost == 0 {
		return bucket.Token
	}
	return cost
}
