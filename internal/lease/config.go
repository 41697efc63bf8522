// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
)

// Config holds the settings of a [Borrower]. All except Lender and Node have defaults.
type Config struct {
	// Lender is the store. It is required.
	Lender Lender

	// Node is the prefix of this node's holder names. It is required, and must be unique over all processes,
	// including earlier runs of the same node.
	Node string

	// Period is the intended lifetime of a slice of tokens, and the interval of maintenance, from a millisecond
	// to a minute. 0 means 100 ms.
	Period time.Duration

	// MinSlice is the smallest slice, unless the share is smaller: at most a billion tokens. 0 means one token. If
	// the bucket has fewer tokens, a slice can be smaller.
	MinSlice bucket.Tokens

	// Share is the largest part of a bucket's capacity that this node leases, above 0 and at most 1. 0 means 0.1. A
	// bucket is not leased if its share is less than [HotTakes] takes.
	Share float64

	// TTL is how long a slice can be spent after its loan was sent, from 4 periods to an hour. 0 means a second or 4
	// periods, whichever is longer. A loan without an answer within TTL has failed.
	TTL time.Duration

	// Grace is how much longer the store keeps the lease, an hour at most. 0 means 4 s. It covers the latency of the
	// store, clock drift, and forward jumps of the store's clock.
	//
	// It does not cover a suspended machine: the monotonic clock of Go stops while a virtual machine or a laptop is suspended.
	// After more than Grace, the store has ended the lease, and the node can still spend its tokens for the rest of the TTL.
	Grace time.Duration

	// MaxKeys bounds the leased buckets. At the bound, no other bucket is leased until one is returned.
	// 0 means [DefaultMaxKeys].
	MaxKeys int

	// Now is the node's monotonic clock: the time since any fixed moment. It must be safe for concurrent use. Nil
	// means the process's monotonic clock.
	Now func() time.Duration
}

const (
	// DefaultMaxKeys is the default of [Config.MaxKeys].
	DefaultMaxKeys = 1024

	// HotTakes is the number of takes per [Config.Period] that make a bucket hot. Below it, leases save nothing.
	// A bucket with less than a fourth of it is returned.
	HotTakes = 8

	// maxSlice bounds the leased tokens of one bucket: a billion tokens.
	maxSlice = 1<<tokenBits - 1
)

// ErrConfig is wrapped by the errors of [New].
var ErrConfig = errors.New("lease: invalid config")

// ErrClosed is the error of a second [Borrower.Close].
var ErrClosed = errors.New("lease: closed")

func (c Config) withDefaults() Config {
	if c.Period == 0 {
		c.Period = 100 * time.Millisecond
	}
	if c.MinSlice == 0 {
		c.MinSlice = bucket.Token
	}
	if c.Share == 0 {
		c.Share = 0.1
	}
	if c.TTL == 0 {
		c.TTL = max(time.Second, 4*c.Period)
	}
	if c.Grace == 0 {
		c.Grace = 4 * time.Second
	}
	if c.MaxKeys == 0 {
		c.MaxKeys = DefaultMaxKeys
	}
	if c.Now == nil {
		began := time.Now()
		c.Now = func() time.Duration { return time.Since(began) }
	}
	return c
}

// check validates c, which has its defaults. The comparisons reject NaN, too.
func (c Config) check() error {
	var mistakes []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			mistakes = append(mistakes, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
		}
	}
	want(c.Lender != nil, "lender is required")
	want(c.Node != "", "node is required")
	want(c.Period >= time.Millisecond && c.Period <= time.Minute, "period %v: must be between 1ms and 1m", c.Period)
	want(c.MinSlice >= 0 && c.MinSlice <= maxSlice, "min slice %v: must be between 0 and %v", c.MinSlice, bucket.Tokens(maxSlice))
	want(c.Share > 0 && c.Share <= 1, "share %v: must be above 0 and at most 1", c.Share)
	want(c.TTL >= 4*c.Period && c.TTL <= time.Hour, "ttl %v: must be between 4 periods, %v, and 1h", c.TTL, 4*c.Period)
	want(c.Grace >= 0 && c.Grace <= time.Hour, "grace %v: must be between 0 and 1h", c.Grace)
	want(c.MaxKeys >= 0, "max keys %d: must be at least 0", c.MaxKeys)
	return errors.Join(mistakes...)
}

func (c *Config) share(l *bucket.Limit) bucket.Tokens {
	return min(bucket.Tokens(float64(l.Capacity())*c.Share), maxSlice)
}

// Leasable reports whether buckets of limit l can be leased. Their refill must not depend on the times of takes,
// and they must have no queue. Intervals that begin with the first take depend on the bucket having been full, and
// windows of a calendar have different lengths.
func Leasable(l *bucket.Limit) bool {
	switch l.Algorithm() {
	case bucket.AlgorithmContinuous:
		return !l.Queued()
	case bucket.AlgorithmStepped:
		return !l.Queued() && l.Anchor() < bucket.AnchorFirst
	}
	return false
}
