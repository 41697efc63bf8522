// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"testing"
	"time"
)

// fly lets a pace see calls that take as long as took says for so many on the
// wire, and returns how many it allows in the end.
func fly(p *pace, most int, took func(flying int) time.Duration) int {
	for range 2000 {
		n := p.limit(most)
		p.learn(took(n), n, true, most)
	}
	return p.limit(most)
}

func TestPace_ALongWireIsFilled(t *testing.T) {
	var p pace
	if got := fly(&p, 16, func(int) time.Duration { return time.Millisecond }); got != 16 {
		t.Errorf("%d calls on a wire that they do not slow down, want all 16", got)
	}
}

func TestPace_ABusyServerIsNotFlooded(t *testing.T) {
	var p pace
	p.learn(40*time.Microsecond, 1, false, 16) // how fast it is alone
	queued := func(n int) time.Duration { return time.Duration(n) * 100 * time.Microsecond }
	if got := fly(&p, 16, queued); got > 4 {
		t.Errorf("%d calls on the wire to a server that works them off one by one, want 4 at most", got)
	}
	if got := fly(&p, 16, func(int) time.Duration { return 2 * time.Millisecond }); got != 16 {
		t.Errorf("%d calls after the way to the server has become long, want 16", got)
	}
}

func TestPace_HasBounds(t *testing.T) {
	var p pace
	if got := p.limit(16); got != fewest {
		t.Errorf("begins with %d, want %d", got, fewest)
	}
	if got := p.limit(1); got != 1 {
		t.Errorf("%d where one is the most", got)
	}
	if got := fly(&p, 1, func(int) time.Duration { return time.Millisecond }); got != 1 {
		t.Errorf("%d where one is the most", got)
	}
}
