// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
)

// In any order of events, the bins equal a naive count, and their number stays within the limit.
func TestTimeline(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(testseed.PCG(seed, 3))
		reach := []int64{1, 40, 3000, 2_000_000, 70_000_000, 90_000_000_000, 1 << 45}[seed%7]
		start := []int64{0, 1_795_165_210_000_000, -5_000_000_000}[seed%3]
		most := []int{2, 7, 64, 512}[seed%4]
		line := newTimeline(most)
		even, odd := line.newSeries(), line.newSeries()
		var events []bucket.Instant
		for i := range 500 {
			at := bucket.Instant(start + random.Int64N(reach))
			if random.IntN(3) > 0 && i > 0 {
				at = events[i-1] + bucket.Instant(random.Int64N(reach/100+1))
			}
			events = append(events, at)
			[...]series{even, odd}[i%2][line.binAt(at)]++
		}
		if line.bins > most || line.bins < 1 {
			t.Fatalf("seed %d: %d bins, want at most %d", seed, line.bins, most)
		}
		first := slices.Min(events)
		if got := line.first * line.width; got > first || first-got >= line.width {
			t.Errorf("seed %d: the first bin begins at %d, %d wide; the first event is at %d", seed, got, line.width, first)
		}
		for _, most := range []int{2, 10, 160} {
			checkView(t, fmt.Sprintf("seed %d, %d bins", seed, most), line.view(most), most, events, even, odd)
		}
	}
}

// checkView counts events, which went to the two series in turn, by hand.
func checkView(t *testing.T, name string, v view, most int, events []bucket.Instant, even, odd series) {
	t.Helper()
	if v.bins > most && events[0] > 0 {
		t.Errorf("%s: got %d bins", name, v.bins)
	}
	want := [2][]int64{make([]int64, v.bins), make([]int64, v.bins)}
	for i, at := range events {
		bin := 0
		for bin+1 < v.bins && v.startOf(bin+1) <= at {
			bin++
		}
		want[i%2][bin]++
	}
	for i, s := range []series{even, odd} {
		if got := v.binCounts(s); !slices.Equal(got, want[i]) {
			t.Errorf("%s, series %d: got\n%v\nwant\n%v", name, i, got, want[i])
		}
	}
}

// A trace whose times are whole seconds has no bins between them.
func TestTimeline_WholeSeconds(t *testing.T) {
	line := newTimeline(timelineBins)
	s := line.newSeries()
	for i := range bucket.Instant(9) {
		s[line.binAt(1_795_165_210*second+i*second)]++
	}
	if v := line.view(60); v.width != second || v.bins != 9 {
		t.Errorf("got %d bins, %d wide", v.bins, v.width)
	}
	line.binAt(1_795_165_210*second + 1)
	if v := line.view(60); v.width != second/5 {
		t.Errorf("with half seconds: bins are %d wide", v.width)
	}
}

func TestView_Labels(t *testing.T) {
	begin := bucket.At(time.Date(2026, time.November, 20, 9, 0, 7, 0, time.UTC))
	for _, tt := range []struct {
		end  bucket.Instant
		want string
	}{
		{500, "09:00:07.000000"},
		{500_000, "09:00:07.000"},
		{60 * second, "09:00:06"},
		{7200 * second, "09:00"},
		{3 * day, "11-20 08:00"},
		{400 * day, "2026-11-19"},
	} {
		line := newTimeline(timelineBins)
		line.binAt(begin + 1)
		line.binAt(begin + tt.end)
		v := line.view(60)
		if got := v.label(0, begin+tt.end); got != tt.want {
			t.Errorf("%d µs: got %q, want %q; bins are %d wide", tt.end, got, tt.want, v.width)
		}
	}
}

func TestWaits(t *testing.T) {
	var w waits
	for _, d := range []time.Duration{0, 10*time.Millisecond - 1, 10 * time.Millisecond, time.Minute, time.Hour, 50 * time.Hour, bucket.Never} {
		w.add(d)
	}
	if want := (waits{2, 1, 0, 0, 0, 1, 0, 2, 1}); w != want {
		t.Errorf("got %v, want %v", w, want)
	}
	for i, want := range []string{"below 10ms", "10ms to 100ms", "100ms to 1s", "1s to 10s", "10s to 1m", "1m to 10m", "10m to 1h", "1h or more", "no wait helps"} {
		if got := waitName(i); got != want {
			t.Errorf("%d: got %q, want %q", i, got, want)
		}
	}
}
