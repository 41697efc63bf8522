// SPDX-License-Identifier: Apache-2.0

package lane

import "time"

// A pace says how many calls a lane has on their way. Where the wire takes the
// time, more of them cost nothing and an ask waits less for the next; where the
// server or this process does, a call more only makes batches smaller, and the
// same asks dearer. Which of the two it is shows in how long a call takes
// against the shortest that was seen, as TCP Vegas tells a full queue from a long
// line (Brakmo and Peterson, 1995).
type pace struct {
	min, max int // of calls: min <= max

	now   int           // calls on their way; 0 is min
	least time.Duration // the shortest call of the epoch before and of this one
	next  time.Duration // of this one alone
	calls int           // of this epoch
}

// epoch is after how many calls a pace begins again with the fewest, as what a
// call takes by itself shows only then, and may have changed.
const epoch = 512

func (p *pace) limit() int { return max(p.now, p.min) }

// learn takes in how long a call took, with how many on their way, and whether
// asks were waiting when it ended. Calls below 3/2 of the shortest leave room for
// more; those above 4 times of it are too many.
func (p *pace) learn(took time.Duration, flying int, waiting bool) {
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
