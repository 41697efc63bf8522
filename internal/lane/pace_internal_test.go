// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"testing"
	"time"
)

// fly observes calls with the latencies of took, by calls in flight, and returns the final limit.
func fly(p *pace, took func(flying int) time.Duration) int {
	for range 2000 {
		n := p.limit()
		p.observe(took(n), n, true)
	}
	return p.limit()
}

func TestPace_ALongWireIsFilled(t *testing.T) {
	for _, fewest := range []int{1, 2, 16} {
		p := pace{min: fewest, max: 16}
		if got := p.limit(); got != fewest {
			t.Errorf("begins with %d, want %d", got, fewest)
		}
		if got := fly(&p, func(int) time.Duration { return time.Millisecond }); got != 16 {
			t.Errorf("%d calls on a wire that they do not slow down, want all 16", got)
		}
	}
}

func TestPace_ABusyServerIsNotFlooded(t *testing.T) {
	for _, fewest := range []int{1, 2} {
		p := pace{min: fewest, max: 16}
		p.observe(40*time.Microsecond, 1, false) // the latency of a single call
		queued := func(n int) time.Duration { return time.Duration(n) * 100 * time.Microsecond }
		if got := fly(&p, queued); got > 4 {
			t.Errorf("%d calls to a server that works them off one by one, want 4 at most", got)
		}
		if got := fly(&p, func(int) time.Duration { return 2 * time.Millisecond }); got != 16 {
			t.Errorf("%d calls after the way to the server has become long, want 16", got)
		}
	}
}

func TestPace_NobodyWaits(t *testing.T) {
	p := pace{min: 2, max: 16}
	for range 2000 {
		p.observe(time.Millisecond, 1, false)
	}
	if got := p.limit(); got != 2 {
		t.Errorf("%d calls where nobody waits for one, want 2", got)
	}
}

func TestPace_HasBounds(t *testing.T) {
	for _, took := range []func(int) time.Duration{
		func(int) time.Duration { return time.Millisecond },
		func(n int) time.Duration { return time.Duration(n*n) * time.Millisecond },
		func(int) time.Duration { return 0 },
	} {
		p := pace{min: 1, max: 1}
		if got := fly(&p, took); got != 1 {
			t.Errorf("%d where one is the most", got)
		}
	}
}
