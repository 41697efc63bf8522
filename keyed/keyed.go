// SPDX-License-Identifier: Apache-2.0

package keyed

import (
	"errors"
	"fmt"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
)

// A Limiter has a bucket per key, all under one limit. It is safe for concurrent use, starts no goroutine and
// needs no Close. Use [Must] or [New]: the zero Limiter is not usable.
type Limiter struct {
	limit   bucket.Limit
	perKey  bool // the limit differs from key to key: see [bucket.Limit.ForKey]
	store   *memstore.Store
	limiter *mete.Limiter // wraps store, for reservations and waiting
}

// Config holds the optional settings of a [Limiter]. The zero Config is valid.
type Config struct {
	// MaxKeys bounds the number of buckets, at about 40 bytes each. Zero means [memstore.DefaultMaxKeys]. The
	// package documentation describes the behavior at the bound.
	MaxKeys int

	// Now is the clock, for tests. Nil means the process's monotonic clock.
	Now func() bucket.Instant
}

// New returns a limiter that gives each key a bucket of limit, which may use any algorithm:
//
//	limit, _, err := bucket.Spec{Capacity: capacity, Rate: rate}.Compile()
//
// The zero limit is an error.
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
		perKey:  limit.Anchor() == bucket.AnchorKey,
		store:   store,
		limiter: limiter,
	}, nil
}

// Must returns a limiter with buckets of capacity whole tokens that refill at rate, in the format of
// [bucket.ParseRate]: "10/1m", "0.5/s". It panics if the limit is invalid, like [regexp.MustCompile]. Use [New]
// for limits from outside of the program.
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
