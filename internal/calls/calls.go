// SPDX-License-Identifier: Apache-2.0

// Package calls counts the calls of a remote store.
package calls

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const size = 24

// A Histogram counts values by powers of two: Counts[i] covers [2^(i-1), 2^i). Counts[0] holds zeros, and the
// last element all larger values.
type Histogram struct {
	Counts [size]int64
	Sum    int64
}

// Counts counts calls. The zero value is ready for use. It is safe for concurrent use.
type Counts struct {
	calls, asks, failed atomic.Int64
	latency, batch      histogram
}

// A Snapshot holds the number of calls, of requests in them, and of failed calls. Latency is in microseconds
// per call, and Batch in requests per call.
type Snapshot struct {
	Calls, Asks, Failed int64
	Latency, Batch      Histogram
}

func (c *Counts) Add(asks int, took time.Duration, err error) {
	c.calls.Add(1)
	c.asks.Add(int64(asks))
	c.latency.add(took.Microseconds())
	c.batch.add(int64(asks))
	if err != nil {
		c.failed.Add(1)
	}
}

func (c *Counts) Read() Snapshot {
	return Snapshot{c.calls.Load(), c.asks.Load(), c.failed.Load(), c.latency.read(), c.batch.read()}
}

// A histogram is an atomic Histogram.
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
