// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"slices"

	"github.com/metehq/mete/api"
)

// A sample holds one second of data in the order of the page: Unix time, allowed, denied, shadow and degraded.
// The times are the median, 95th and 99th percentile of the decision time and of the store's time, in seconds.
type sample struct {
	at     int64
	counts [4]uint64
	times  [6]*float64 // nil if not measured
}

func (s *sample) row() []any {
	row := make([]any, 0, 1+len(s.counts)+len(s.times))
	row = append(row, s.at)
	for _, n := range s.counts {
		row = append(row, n)
	}
	for _, t := range s.times {
		row = append(row, t)
	}
	return row
}

type ruleSample struct {
	rule   string
	counts api.RuleCounts
}

func (s *ruleSample) row() []any {
	row := []any{s.rule}
	for _, n := range s.counts {
		row = append(row, n)
	}
	return row
}

var quantiles = [...]float64{0.50, 0.95, 0.99}

func (t *Totals) counts() [4]uint64 { return [4]uint64{t.Allowed, t.Denied, t.Shadow, t.Degraded} }

func (t *RuleTotals) counts() api.RuleCounts {
	return api.RuleCounts{t.Allowed, t.Denied, t.Shadow, t.Near, t.Degraded}
}

func rulesBetween(before, after []RuleTotals) []ruleSample {
	known := make(map[string]*RuleTotals, len(before))
	for i := range before {
		known[before[i].Rule] = &before[i]
	}
	var list []ruleSample
	for i := range after {
		now := after[i].counts()
		if b := known[after[i].Rule]; b != nil {
			if was := b.counts(); !slices.ContainsFunc([]int{0, 1, 2, 3, 4}, func(j int) bool { return was[j] > now[j] }) {
				for j := range now {
					now[j] -= was[j]
				}
			} // otherwise the counters were reset
		}
		if now != (api.RuleCounts{}) {
			list = append(list, ruleSample{after[i].Rule, now})
		}
	}
	return list
}

// quantile returns the given quantile of the durations between two histograms with the same bounds, or nil
// without durations. It interpolates within a bucket and uses the last bound for longer durations.
func quantile(before, after *Histogram, part float64) *float64 {
	all := uint64(0)
	counts := make([]uint64, len(after.Counts))
	for i := range counts {
		counts[i] = after.Counts[i]
		if len(before.Counts) == len(counts) && before.Counts[i] <= counts[i] {
			counts[i] -= before.Counts[i]
		}
		all += counts[i]
	}
	if all == 0 || len(after.Bounds) == 0 {
		return nil
	}
	rank := part * float64(all)
	below, seen := 0.0, 0.0
	for i, n := range counts {
		if i == len(after.Bounds) {
			break
		}
		if n > 0 && seen+float64(n) >= rank {
			at := below + (after.Bounds[i]-below)*(rank-seen)/float64(n)
			return &at
		}
		seen += float64(n)
		below = after.Bounds[i]
	}
	return &below
}
