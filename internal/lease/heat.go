// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// heat finds the buckets that are charged often, in constant space: it counts
// takes by a hash of the key. Where two keys have one, either may be found a little
// early, which costs a loan that is soon given back.
type heat struct {
	seed  maphash.Seed
	cells [heatCells]atomic.Uint64 // the number of a period, and the takes in it
}

const (
	heatCells = 1 << 12
	takeBits  = 16
)

// hot counts a take of key in the period that now lies in, and reports whether
// it is the HotTakes'th.
func (h *heat) hot(key string, now, period time.Duration) bool {
	cell := &h.cells[maphash.String(h.seed, key)%heatCells]
	this := uint64(now/period) << takeBits
	for {
		word := cell.Load()
		next := this | 1
		if word>>takeBits == this>>takeBits {
			if next = word + 1; next>>takeBits != word>>takeBits {
				return true // as many as can be counted
			}
		}
		if cell.CompareAndSwap(word, next) {
			return next&(1<<takeBits-1) >= HotTakes
		}
	}
}
