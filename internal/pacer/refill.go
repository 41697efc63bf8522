// SPDX-License-Identifier: Apache-2.0

package pacer

import (
	"slices"
	"time"
)

// A refill measures how fast a quota refills while it is used, from the remainder in each answer and the number
// of requests in between. It averages over recent slots. A slot with a far larger refill than most is the start
// of a window and does not count.
type refill struct {
	rate float64 // tokens per second; below 0 if others take more than the refill

	took   time.Duration // of the current slot
	tokens float64
	slots  [slotCount]slot
	n      int // slots so far
}

type slot struct {
	seconds, tokens float64
}

const (
	slotCount = 8

	// A slot is as long as slotTokens take to refill, within bounds.
	slotTokens   = 4
	shortestSlot = 50 * time.Millisecond
	longestSlot  = 500 * time.Millisecond

	// smoothing is the weight of a new measurement. All clients of a key see the same remainder: without
	// smoothing, each would correct for all.
	smoothing = 0.25
)

func (r *refill) add(took time.Duration, tokens float64) {
	if took < 0 {
		return
	}
	r.took += took
	r.tokens += tokens
	want := longestSlot
	if r.rate > 0 {
		want = min(max(time.Duration(slotTokens/r.rate*float64(time.Second)), shortestSlot), longestSlot)
	}
	if r.took < want {
		return
	}
	r.slots[r.n%slotCount] = slot{r.took.Seconds(), r.tokens}
	r.n++
	r.took, r.tokens = 0, 0
	r.measure()
}

func (r *refill) measure() {
	slots := r.slots[:min(r.n, slotCount)]
	var perSecond [slotCount]float64
	for i, s := range slots {
		perSecond[i] = s.tokens / s.seconds
	}
	sorted := perSecond[:len(slots)]
	slices.Sort(sorted)
	usual := sorted[(len(slots)-1)/4]
	var seconds, tokens float64
	for _, s := range slots {
		seconds += s.seconds
		if s.tokens > 2*max(usual, 0)*s.seconds+1.5 {
			tokens += usual * s.seconds
			continue
		}
		tokens += s.tokens
	}
	measured := tokens / seconds
	if r.rate == 0 {
		r.rate = measured
		return
	}
	r.rate += smoothing * (measured - r.rate)
}

func (r *refill) restart() { r.took, r.tokens, r.n = 0, 0, 0 }

// minRate returns the lowest rate of the last three slots, but at least a quarter of the usual rate.
func (r *refill) minRate() float64 {
	least := r.rate
	for i := range min(r.n, 3) {
		s := r.slots[(r.n-1-i)%slotCount]
		least = min(least, s.tokens/s.seconds)
	}
	return max(least, r.rate/4, 0)
}
