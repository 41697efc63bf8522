// SPDX-License-Identifier: Apache-2.0

// Package calls counts the calls of a store that is far away.
package calls

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const size = 24

// A Histogram counts values by powers of two: Counts[i] are those from 2^(i-1) up
// to, and not including, 2^i. Counts[0] are zeros, and the last has all larger.
type Histogram struct {
	Counts [size]int64
	Sum    int64
}

// Counts are of calls. The zero Counts are ready for use, and safe for concurrent use.
type Counts struct {
	calls, asks, failed atomic.Int64
	latency, batch      histogram
}

// Snapshot are the counts at one time: how many calls there were, how many asks
// went in them, how many brought an error; how long they took, in microseconds, and
// how many asks went in one.
type Snapshot struct {
	Calls, Asks, Failed int64
	Latency, Batch      Histogram
}

// Add counts a call.
func (c *Counts) Add(asks int, took time.Duration, err error) {
	c.calls.Add(1)
	c.asks.Add(int64(asks))
	c.latency.add(took.Microseconds())
	c.batch.add(int64(asks))
	if err != nil {
		c.failed.Add(1)
	}
}

// Read returns the counts.
func (c *Counts) Read() Snapshot {
	return Snapshot{c.calls.Load(), c.asks.Load(), c.failed.Load(), c.latency.read(), c.batch.read()}
}

// A histogram is a Histogram that grows.
type histogram struct {
	counts [size]atomic.Int64
	sum    atomic.Int64
}

func (h *histogram) add(v int64) {
	h.counts[min(bits.Len64(uint64(max(v, 0))), size-1)].Add(1)
	h.sum.Add(v)
}

func (h *histogram) read() (r Histogram) {
	for i := range h.counts {
		r.Counts[i] = h.counts[i].Load()
	}
	r.Sum = h.sum.Load()
	return r
}
