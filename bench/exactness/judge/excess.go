// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"time"
)

// Excess returns the tokens that were admitted above the promise in the worst window of the worst key. A take counts
// only in windows that surely contain its decision. If a key had several limits, the promise is their sum.
func (h *History) Excess(s Shape) int {
	byKey := map[string][]admission{}
	for _, t := range h.takesByCall() {
		if t.Outcome != Admitted {
			continue
		}
		for _, c := range t.Charges {
			byKey[c.Key] = append(byKey[c.Key], admission{t.Called, t.Done, c.Limit})
		}
	}
	worst := 0
	for _, admitted := range byKey {
		worst = max(worst, excess(admitted, s))
	}
	return worst
}

type admission struct {
	called, done time.Time
	limit        Limit
}

func excess(admitted []admission, s Shape) int {
	var limits []Limit
	for _, a := range admitted {
		if !slices.Contains(limits, a.limit) {
			limits = append(limits, a.limit)
		}
	}
	if s == Epoch && len(limits) == 1 {
		return epochExcess(admitted, limits[0])
	}
	byDone := slices.Clone(admitted)
	slices.SortStableFunc(byDone, func(a, b admission) int { return a.done.Compare(b.done) })
	worst := 0
	for i, start := range admitted {
		count := 0
		for _, a := range byDone {
			if a.called.Before(start.called) {
				continue
			}
			count++
			allowed := 0
			for _, l := range limits {
				allowed += l.ceiling(s, a.done.Sub(start.called), i == 0)
			}
			worst = max(worst, count-allowed)
		}
	}
	return worst
}

// epochExcess checks every sequence of aligned windows.
func epochExcess(admitted []admission, l Limit) int {
	counts := map[int64]int{}
	first, last := int64(1<<62), int64(0)
	for _, a := range admitted {
		window := a.called.Add(-Resolution).UnixNano() / int64(l.Period)
		if a.done.Add(Resolution).UnixNano()/int64(l.Period) != window {
			continue // it may lie in either window
		}
		counts[window]++
		first, last = min(first, window), max(last, window)
	}
	worst, running := 0, 0
	for w := first; w <= last; w++ {
		running = max(running, 0) + counts[w] - l.Capacity
		worst = max(worst, running)
	}
	return worst
}
