// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// heat finds hot buckets in constant space: it counts takes by a hash of the key. A collision can make a bucket
// hot too early, which costs one loan.
type heat struct {
	seed  maphash.Seed
	cells [heatCells]atomic.Uint64 // the number of a period, and the takes in it
}

const (
	heatCells = 1 << 12
	takeBits  = 16
)

// countTake counts a take of key in the current period, and reports whether the bucket is hot.
func (h *heat) countTake(key string, now, period time.Duration) bool {
	cell := &h.cells[maphash.String(h.seed, key)%heatCells]
	this := uint64(now/period) << takeBits
	for {
		word := cell.Load()
		next := this | 1
		if word>>takeBits == this>>takeBits {
			if next = word + 1; next>>takeBits != word>>takeBits {
				return true // the counter is at its maximum
			}
		}
		if cell.CompareAndSwap(word, next) {
			return next&(1<<takeBits-1) >= HotTakes
		}
	}
}
