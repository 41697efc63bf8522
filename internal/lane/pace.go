// SPDX-License-Identifier: Apache-2.0

package lane

import "time"

// A pace adapts the number of calls in flight. If most of the latency is network time, more calls cost nothing
// and shorten the wait. If the server or this process is the bottleneck, more calls only make batches smaller.
// The pace compares the latency of each call with the lowest one seen, as TCP Vegas distinguishes queues from
// distance (Brakmo and Peterson, 1995).
type pace struct {
	min, max int // min <= max

	now   int           // permitted calls in flight; 0 is min
	least time.Duration // lowest latency of this epoch and the last
	next  time.Duration // lowest latency of this epoch
	calls int           // number in this epoch
}

// epoch is the number of calls after which a pace restarts at the minimum. Only then can it measure the latency
// without competition, which may have changed.
const epoch = 512

func (p *pace) limit() int { return max(p.now, p.min) }

// observe records the latency of a call, the number of calls in flight, and whether asks were waiting at its end.
// A latency below 3/2 of the lowest permits one call more, and a latency above 4 times the lowest one call less.
func (p *pace) observe(took time.Duration, flying int, waiting bool) {
	if p.calls++; p.calls > epoch {
		p.now, p.calls = p.min, 1
		p.least, p.next = p.next, 0
	}
	if p.next == 0 || took < p.next {
		p.next = took
	}
	if p.least == 0 || took < p.least {
		p.least = took
	}
	switch limit := p.limit(); {
	case took > 4*p.least:
		p.now = max(limit-1, p.min)
	case waiting && flying >= limit && took < p.least*3/2:
		p.now = min(limit+1, p.max)
	}
}
