// SPDX-License-Identifier: Apache-2.0

package main

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
	var low, high, all histogram
	for d := range time.Duration(500) {
		low.add(d + 1)
		high.add(d + 501)
	}
	high.add(3 * time.Millisecond)
	all.merge(&low)
	all.merge(&high)
	for _, c := range []struct {
		q    float64
		want time.Duration
	}{{0.01, 11}, {0.5, 501}, {0.99, 991}} {
		if got := all.percentile(c.q); got < c.want || got > c.want*17/16 {
			t.Errorf("percentile(%v) = %d, want between %d and %d", c.q, got, c.want, c.want*17/16)
		}
	}
	if got, want := all.percentile(1), 3*time.Millisecond; got != want || all.max != want {
		t.Errorf("percentile(1) = %v, max = %v, want %v", got, all.max, want)
	}
	if all.total != 1001 || all.over != 1 {
		t.Errorf("total, over = %d, %d, want 1001, 1", all.total, all.over)
	}
}
