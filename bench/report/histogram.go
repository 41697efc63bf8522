// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math/bits"
	"time"
)

// A Histogram counts durations in 16 classes per power of two. Percentiles are at most 6% too high; the
// maximum is exact. The zero Histogram is empty. It is not safe for concurrent use.
type Histogram struct {
	counts [64 * fine]int64
	total  int64
	max    time.Duration
}

const (
	fine     = 16
	fineBits = 4
)

// Add counts d. A negative d counts as 0.
func (h *Histogram) Add(d time.Duration) { h.AddN(d, 1) }

func (h *Histogram) AddN(d time.Duration, n int64) {
	h.counts[class(d)] += n
	h.total += n
	h.max = max(h.max, d)
}

// Merge adds the counts of o.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
	h.max = max(h.max, o.max)
}

func (h *Histogram) Total() int64 { return h.total }

// Max returns the longest duration, or 0 for an empty histogram.
func (h *Histogram) Max() time.Duration { return h.max }

// Percentile returns the upper bound of the class of the quantile q, 0 ≤ q ≤ 1, or the maximum if it is less.
func (h *Histogram) Percentile(q float64) time.Duration {
	left := int64(q * float64(h.total))
	for i, n := range h.counts {
		if left -= n; left < 0 {
			return min(edge(i), h.max)
		}
	}
	return h.max
}

// class returns the class of d: exact below 16 ns, then 16 classes per power of two.
func class(d time.Duration) int {
	u := uint64(max(d, 0))
	if u < fine {
		return int(u)
	}
	shift := bits.Len64(u) - fineBits - 1
	return (shift+1)*fine + int(u>>shift) - fine
}

func edge(i int) time.Duration {
	if i < fine {
		return time.Duration(i)
	}
	shift := i/fine - 1
	return time.Duration((uint64(i%fine+fine)+1)<<shift - 1)
}
