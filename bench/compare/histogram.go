// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/bits"
	"time"
)

// A histogram counts durations in classes 1/16 of a power of two wide: a
// percentile is at most 6 % too high, the maximum is exact. The zero histogram
// is empty. It is not safe for concurrent use.
type histogram struct {
	counts [64 * fine]int64
	total  int64
	max    time.Duration
	over   int64 // durations above the promised pause
}

const (
	fine     = 16
	fineBits = 4
)

// promised is the longest that a decision may wait for the store's own work.
const promised = time.Millisecond

func (h *histogram) add(d time.Duration) {
	h.counts[class(d)]++
	h.total++
	h.max = max(h.max, d)
	if d > promised {
		h.over++
	}
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
	h.over += o.over
	h.max = max(h.max, o.max)
}

// percentile returns the upper edge of the class that holds the share q of all
// durations, 0 ≤ q ≤ 1.
func (h *histogram) percentile(q float64) time.Duration {
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
