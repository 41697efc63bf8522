// SPDX-License-Identifier: Apache-2.0

package pacer

import (
	"slices"
	"time"
)

// A refill measures how fast a quota comes back while it is used: by what is
// left after each answer, and how many requests lie between them. It does so in
// slots, of which the latest count. A slot in which far more came back than in
// most others is the beginning of a window, and says nothing about the rate.
type refill struct {
	rate float64 // tokens a second; below 0 where others take more than comes back

	took   time.Duration // of the slot that is being filled
	tokens float64
	slots  [slotCount]slot
	n      int // slots so far
}

type slot struct {
	seconds, tokens float64
}

const (
	slotCount = 8

	// A slot is as long as it takes for slotTokens to come back, within bounds.
	slotTokens   = 4
	shortestSlot = 50 * time.Millisecond
	longestSlot  = 500 * time.Millisecond

	// smoothing is how much a new measurement counts. All that share a key see the
	// same rest: if they acted on it at once, each would do the work of all.
	smoothing = 0.25
)

// add says that tokens came back in the time since the last call.
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

// measure sets the rate by the latest slots.
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

// restart forgets the slots, but not the rate.
func (r *refill) restart() { r.took, r.tokens, r.n = 0, 0, 0 }

// least is the lowest rate of the latest slots, but no less than a quarter of the
// usual one.
func (r *refill) least() float64 {
	least := r.rate
	for i := range min(r.n, 3) {
		s := r.slots[(r.n-1-i)%slotCount]
		least = min(least, s.tokens/s.seconds)
	}
	return max(least, r.rate/4, 0)
}
