// SPDX-License-Identifier: Apache-2.0

package keyed

import (
	"errors"
	"fmt"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
)

// A Limiter has a bucket for each key, all under one limit. It is safe for
// concurrent use, starts no goroutine and needs no Close. It is made by [Must] or
// [New]; the zero Limiter is of no use.
type Limiter struct {
	limit   bucket.Limit
	ofKey   bool // the limit differs from key to key: see [bucket.Limit.For]
	store   *memstore.Store
	limiter *mete.Limiter // over store, for all that is more than a take
}

// Config are a [Limiter]'s optional settings. The zero Config is a good one.
type Config struct {
	// MaxKeys bounds the buckets that are kept, at about 40 bytes each. If zero,
	// it is [memstore.DefaultMaxKeys]. What happens at the bound is in the
	// package's description.
	MaxKeys int

	// Now is the clock, for tests. If nil, it is the process's monotonic clock.
	Now func() bucket.Instant
}

// New returns a limiter that gives each key a bucket of limit, which may be of
// any algorithm:
//
//	limit, _, err := bucket.Spec{Capacity: capacity, Rate: rate}.Compile()
//
// The zero limit is refused.
func New(limit bucket.Limit, c Config) (*Limiter, error) {
	if limit == (bucket.Limit{}) {
		return nil, errors.New("keyed: new: limit is required")
	}
	store, err := memstore.New(memstore.Config{MaxKeys: c.MaxKeys, Now: c.Now})
	if err != nil {
		return nil, fmt.Errorf("keyed: new: %w", err)
	}
	limiter, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		return nil, fmt.Errorf("keyed: new: %w", err)
	}
	return &Limiter{
		limit:   limit,
		ofKey:   limit.Anchor() == bucket.AnchorKey,
		store:   store,
		limiter: limiter,
	}, nil
}

// Must returns a limiter whose buckets hold capacity whole tokens and refill at
// rate, written as [bucket.ParseRate] reads it: "10/1m", "0.5/s". It is for
// limits that are written in the program, and panics if they make no sense, like
// [regexp.MustCompile]. For those that come from outside there is [New].
func Must(rate string, capacity int) *Limiter {
	r, err := bucket.ParseRate(rate)
	if err != nil {
		panic(fmt.Errorf("keyed: must: %w", err))
	}
	limit, err := bucket.NewLimit(tokens(capacity), r)
	if err != nil {
		panic(fmt.Errorf("keyed: must: %w", err))
	}
	l, err := New(limit, Config{})
	if err != nil {
		panic(err)
	}
	return l
}
