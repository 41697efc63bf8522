// SPDX-License-Identifier: Apache-2.0

package redisstore

import "time"

// A pace says how many calls a lane has on the wire. Where the wire takes the
// time, more of them cost nothing and a take waits less for the next; where
// Redis or this process does, a call more only makes batches smaller, and the
// same takes dearer. Which of the two it is shows in how long a call takes
// against the shortest that was seen, as TCP Vegas tells a full queue from a long
// line (Brakmo and Peterson, 1995). The zero pace is ready for use.
type pace struct {
	most  int           // calls on the wire; 0 is fewest
	least time.Duration // the shortest call of the epoch before and of this one
	next  time.Duration // of this one alone
	calls int           // of this epoch
}

const (
	fewest = 2 // calls on the wire: one is written while another is worked on

	// epoch is after how many calls a pace begins again with the fewest, as what a
	// call takes by itself shows only then, and may have changed.
	epoch = 512
)

func (p *pace) limit(most int) int { return min(max(p.most, fewest), most) }

// learn takes in how long a call took, with how many on the wire, and whether
// takes were waiting when it ended. Calls below 3/2 of the shortest leave room for
// more; those above 4 times of it are too many.
func (p *pace) learn(took time.Duration, flying int, waiting bool, most int) {
	if p.calls++; p.calls > epoch {
		p.most, p.calls = fewest, 1
		p.least, p.next = p.next, 0
	}
	if p.next == 0 || took < p.next {
		p.next = took
	}
	if p.least == 0 || took < p.least {
		p.least = took
	}
	switch limit := p.limit(most); {
	case took > 4*p.least:
		p.most = max(limit-1, fewest)
	case waiting && flying >= limit && took < p.least*3/2:
		p.most = min(limit+1, most)
	}
}
