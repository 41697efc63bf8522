// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"sync/atomic"

	"github.com/metehq/mete/bucket"
)

const start bucket.Instant = 1_700_000_000_000_000

// A Clock stands still until it is set. It is safe for concurrent use. The zero Clock is at the epoch.
type Clock struct{ now atomic.Int64 }

// NewClock returns a clock at an instant in 2023.
func NewClock() *Clock {
	c := &Clock{}
	c.Set(start)
	return c
}

func (c *Clock) Now() bucket.Instant { return bucket.Instant(c.now.Load()) }

// Set moves the clock to i, forward or back.
func (c *Clock) Set(i bucket.Instant) { c.now.Store(int64(i)) }

// Advance moves the clock by us microseconds.
func (c *Clock) Advance(us int64) { c.now.Add(us) }
