// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"testing"
	"time"
)

func TestHistogramClassesHoldTheirDurations(t *testing.T) {
	last := -1
	for _, d := range []time.Duration{-1, 0, 1, 15, 16, 17, 31, 32, 33, 1000, 1_000_000, time.Hour, math.MaxInt64} {
		i := class(d)
		if i < last || edge(i) < d || i > 0 && edge(i-1) >= d {
			t.Errorf("class(%d) = %d, which holds durations from %d to %d; the one before was %d", d, i, edge(max(i, 1)-1)+1, edge(i), last)
		}
		last = i
	}
}

func TestHistogramPercentiles(t *testing.T) {
	var low, high, all Histogram
	for d := range time.Duration(500) {
		low.Add(d + 1)
		high.Add(d + 501)
	}
	high.Add(3 * time.Millisecond)
	all.Merge(&low)
	all.Merge(&high)
	for _, c := range []struct {
		q    float64
		want time.Duration
	}{{0.01, 11}, {0.5, 501}, {0.99, 991}} {
		if got := all.Percentile(c.q); got < c.want || got > c.want*17/16 {
			t.Errorf("Percentile(%v) = %d, want between %d and %d", c.q, got, c.want, c.want*17/16)
		}
	}
	if got, want := all.Percentile(1), 3*time.Millisecond; got != want || all.Max() != want {
		t.Errorf("Percentile(1) = %v, Max = %v, want %v", got, all.Max(), want)
	}
	if got, want := all.Total(), int64(1001); got != want {
		t.Errorf("Total = %d, want %d", got, want)
	}
}

func TestHistogramCountsManyAtOnce(t *testing.T) {
	var one, many Histogram
	for range 3 {
		one.Add(time.Millisecond)
	}
	many.AddN(time.Millisecond, 3)
	if one != many {
		t.Errorf("AddN(1ms, 3) differs from three Add(1ms): %d of at most %v", many.Total(), many.Max())
	}
}
