// SPDX-License-Identifier: Apache-2.0

package monitor_test

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/monitor"
)

// decided is a decision by the rule of the tests' policy.
func decided(tb testing.TB) (*monitor.Counts, *mete.Decision) {
	tb.Helper()
	return monitor.NewCounts("memory"), &mete.Decision{Allowed: true, Rule: "free"}
}

// Counting a decision of a rule that is known allocates nothing: it is on the way of
// every request.
func TestCounts_Allocations(t *testing.T) {
	counts, d := decided(t)
	counts.OnDecision(t.Context(), d)
	if n := testing.AllocsPerRun(100, func() { counts.OnDecision(t.Context(), d) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkCounts(b *testing.B) {
	b.Run("serial", func(b *testing.B) {
		counts, d := decided(b)
		b.ReportAllocs()
		for b.Loop() {
			counts.OnDecision(b.Context(), d)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		counts, d := decided(b)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				counts.OnDecision(b.Context(), d)
			}
		})
	})
}
