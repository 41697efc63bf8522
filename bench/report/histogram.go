// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math/bits"
	"time"
)

// A Histogram counts durations in classes 1/16 of a power of two wide: a
// percentile is at most 6 % too high, the maximum is exact. The zero Histogram
// is empty. It is not safe for concurrent use: give each goroutine its own.
type Histogram struct {
	counts [64 * fine]int64
	total  int64
	max    time.Duration
}

const (
	fine     = 16
	fineBits = 4
)

// Add counts d; below 0 it counts as 0.
func (h *Histogram) Add(d time.Duration) { h.AddN(d, 1) }

// AddN counts d n times.
func (h *Histogram) AddN(d time.Duration, n int64) {
	h.counts[class(d)] += n
	h.total += n
	h.max = max(h.max, d)
}

// Merge adds what o has counted.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
	h.max = max(h.max, o.max)
}

// Total returns the number of durations.
func (h *Histogram) Total() int64 { return h.total }

// Max returns the longest duration, 0 where there is none.
func (h *Histogram) Max() time.Duration { return h.max }

// Percentile returns the upper edge of the class that holds the share q of all
// durations, 0 ≤ q ≤ 1, but never more than the longest.
func (h *Histogram) Percentile(q float64) time.Duration {
	left := int64(q * float64(h.total))
	for i, n := range h.counts {
		if left -= n; left < 0 {
			return min(edge(i), h.max)
		}
	}
	return h.max
}

// class returns the class of d: exact below 16 ns, then 16 classes to each
// power of two.
func class(d time.Duration) int {
	u := uint64(max(d, 0))
	if u < fine {
		return int(u)
	}
	shift := bits.Len64(u) - fineBits - 1
	return (shift+1)*fine + int(u>>shift) - fine
}

// edge returns the longest duration of class i.
func edge(i int) time.Duration {
	if i < fine {
		return time.Duration(i)
	}
	shift := i/fine - 1
	return time.Duration((uint64(i%fine+fine)+1)<<shift - 1)
}
