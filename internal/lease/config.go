// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
)

// Config are the settings of a [Borrower]. All but Lender and Node have defaults.
type Config struct {
	// Lender is asked for loans. It is required.
	Lender Lender

	// Node begins the names of this node's holders. It is required, and no other
	// process has the same, not even the one that this node ran before.
	Node string

	// Period is how long a slice should last, from a millisecond to a minute. 0 is
	// 100 ms. Slices are looked after as often.
	Period time.Duration

	// MinSlice is the least size of a slice, where the share is not less: at most a
	// billion tokens. 0 is one token. The bucket may not hold as much.
	MinSlice bucket.Tokens

	// Share is the most of a bucket's capacity that this node holds at a time, above
	// 0 and at most 1. 0 is 0.1. A bucket whose share is less than [HotTakes] takes
	// is not leased.
	Share float64

	// TTL is how long a slice is spent after it was asked for, at least 4 periods and
	// at most an hour. 0 is a second, or 4 periods where that is more. A loan that
	// is not answered meanwhile has failed.
	TTL time.Duration

	// Grace is how much longer the store keeps the entry: for the time that the store
	// takes to answer, for clocks that do not run alike, and for a store's clock
	// that is set forward. At most an hour. 0 is 4 s.
	Grace time.Duration

	// MaxKeys bounds the buckets that are leased at a time. Others are not, until
	// one has been given back. 0 is [DefaultMaxKeys].
	MaxKeys int

	// Now is the node's clock: the time since any one moment. It must not be set and
	// must be safe for concurrent use. Nil is the process's monotonic clock.
	Now func() time.Duration
}

const (
	// DefaultMaxKeys bounds the leased buckets where [Config.MaxKeys] is 0.
	DefaultMaxKeys = 1024

	// HotTakes is how many takes in a [Config.Period] make a bucket hot. With fewer
	// it is as well to ask the store. It is given back where they are fewer than a
	// fourth.
	HotTakes = 8

	// maxSlice bounds what is held of one bucket: a billion tokens.
	maxSlice = 1<<tokenBits - 1
)

// ErrConfig is wrapped by the errors of [New]. It joins one for each mistake.
var ErrConfig = errors.New("lease: invalid config")

// ErrClosed is returned by a second [Borrower.Close].
var ErrClosed = errors.New("lease: closed")

// withDefaults fills in what c leaves out.
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

// check reports every mistake in c, which has its defaults. Comparisons are such
// that a NaN is one.
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

// share is the most that is held of a bucket of limit l.
func (c *Config) share(l *bucket.Limit) bucket.Tokens {
	return min(bucket.Tokens(float64(l.Capacity())*c.Share), maxSlice)
}

// Leasable reports whether buckets of limit l are lent at all: those that refill
// whatever was taken when, and have no queue. One whose intervals begin when it
// was full has none to keep while some of it is lent.
func Leasable(l *bucket.Limit) bool {
	switch l.Algorithm() {
	case bucket.Continuous:
		return !l.Queued()
	case bucket.Stepped:
		return !l.Queued() && l.Anchor() != bucket.AnchorFirst
	}
	return false
}
