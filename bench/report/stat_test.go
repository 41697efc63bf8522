// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"

	"github.com/metehq/mete/bench/report"
)

func TestStat(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   report.Stat
		text   string
	}{
		{[]float64{3}, report.Stat{Median: 3, Min: 3, Max: 3}, "3.0"},
		{[]float64{3, 1, 2}, report.Stat{Median: 2, Min: 1, Max: 3}, "2.0 [1.0–3.0]"},
		{[]float64{4, 1, 2, 3}, report.Stat{Median: 2.5, Min: 1, Max: 4}, "2.5 [1.0–4.0]"},
		{[]float64{0, 0.5, 1}, report.Stat{Median: 0.5, Min: 0, Max: 1}, "0.5"}, // no range below 1
		{[]float64{900, 1000, 1050}, report.Stat{Median: 1000, Min: 900, Max: 1050}, "1000"},
	} {
		got := report.NewStat(c.values)
		if *got != c.want || got.String() != c.text {
			t.Errorf("NewStat(%v) = %+v, %q, want %+v, %q", c.values, *got, got, c.want, c.text)
		}
	}
}
