// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"slices"
	"testing"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/policy"
)

// A growing source has allowed one more each time that it is asked.
type growing struct{ allowed uint64 }

func (s *growing) State() api.ServerState { return api.ServerState{Instance: "one"} }

func (s *growing) Totals() Totals {
	s.allowed++
	return Totals{Allowed: s.allowed}
}

// After the clock is set back, samples continue from the new time, also for listeners that have seen later ones.
func TestMonitor_ClockSetBack(t *testing.T) {
	h := &Monitor{source: &growing{}, policy: func() *policy.Matcher { return nil }, instance: "one", past: []Totals{{}}, ticks: 100}
	times := func(samples []sample) (at []int64) {
		sum := uint64(0)
		for i := range samples {
			at = append(at, samples[i].at)
			sum += samples[i].counts[0]
		}
		if want := h.last.Allowed; len(samples) == len(h.history) && sum > want {
			t.Errorf("%d are counted of %d", sum, want)
		}
		return at
	}
	for _, now := range []int64{101, 103, 104} {
		h.tick(now)
	}
	if got, want := times(h.history), []int64{101, 102, 103, 104}; !slices.Equal(got, want) {
		t.Fatalf("samples of %v, want %v", got, want)
	}
	h.tick(102)
	if got, want := times(h.history), []int64{101, 102}; !slices.Equal(got, want) || h.history[1].counts[0] != 1 {
		t.Errorf("samples of %v, the last with %v; want %v with 1", got, h.history[1].counts, want)
	}
	h.tick(102) // within the same second
	h.tick(103)
	if got, want := times(h.history), []int64{101, 102, 103}; !slices.Equal(got, want) || h.history[2].counts[0] != 2 {
		t.Errorf("samples of %v, the last with %v; want %v with 2", got, h.history[2].counts, want)
	}
	for id, want := range map[string][]int64{"one:104": {101, 102, 103}, "one:103": nil, "one:102": {103}} {
		if got := times(h.since(id)); !slices.Equal(got, want) {
			t.Errorf("after %s: samples of %v, want %v", id, got, want)
		}
	}
	h.tick(10)
	if got, want := times(h.history), []int64{10}; !slices.Equal(got, want) {
		t.Errorf("long before: samples of %v, want %v", got, want)
	}
}
