// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"math"
	"slices"
	"testing"

	"github.com/metehq/mete/api"
)

func TestQuantile(t *testing.T) {
	bounds := []float64{1, 2, 4}
	for _, tt := range []struct {
		name          string
		before, after []uint64
		part          float64
		want          float64 // NaN for none
	}{
		{"nothing measured", []uint64{0, 0, 0, 0}, []uint64{0, 0, 0, 0}, 0.5, math.NaN()},
		{"nothing new", []uint64{3, 1, 0, 0}, []uint64{3, 1, 0, 0}, 0.5, math.NaN()},
		{"spread within a bucket", []uint64{0, 0, 0, 0}, []uint64{0, 10, 0, 0}, 0.5, 1.5},
		{"what was before does not count", []uint64{100, 0, 0, 0}, []uint64{100, 0, 10, 0}, 0.5, 3},
		{"the end of a bucket", []uint64{0, 0, 0, 0}, []uint64{5, 5, 0, 0}, 0.5, 1},
		{"beyond the last bound", []uint64{0, 0, 0, 0}, []uint64{0, 0, 0, 7}, 0.99, 4},
		{"no histogram before", nil, []uint64{0, 4, 0, 0}, 1, 2},
		{"no histogram at all", nil, nil, 0.5, math.NaN()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := quantile(&Histogram{bounds, tt.before}, &Histogram{bounds, tt.after}, tt.part)
			switch {
			case math.IsNaN(tt.want):
				if got != nil {
					t.Errorf("got %v, want none", *got)
				}
			case got == nil || math.Abs(*got-tt.want) > 1e-9:
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRulesBetween(t *testing.T) {
	before := []RuleTotals{{Rule: "a", Allowed: 5, Denied: 1}, {Rule: "idle", Allowed: 9}, {Rule: "anew", Allowed: 100, Denied: 7}, {Rule: "gone", Allowed: 1}}
	after := []RuleTotals{{Rule: "anew", Allowed: 3}, {Rule: "a", Allowed: 7, Denied: 1, Shadow: 2, Near: 1, Degraded: 4}, {Rule: "idle", Allowed: 9}, {Rule: "new", Denied: 2}}
	want := []ruleSample{{"anew", api.RuleCounts{3}}, {"a", api.RuleCounts{2, 0, 2, 1, 4}}, {"new", api.RuleCounts{0, 2}}}
	if got := rulesBetween(before, after); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The parts of a count add up.
func TestShare(t *testing.T) {
	for _, n := range []int64{1, 3, 7} {
		for _, count := range []uint64{0, 1, 10, 11} {
			sum := uint64(0)
			for i := range n {
				sum += share(count, n, i)
			}
			if sum != count {
				t.Errorf("%d in %d parts add up to %d", count, n, sum)
			}
		}
	}
}
