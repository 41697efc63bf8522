// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"time"

	"github.com/metehq/mete/bucket"
)

const (
	// timelineBins bounds the bins of a timeline, and sparkBins the bins of a rule's timeline. In longer traces
	// the bins are wider.
	timelineBins = 512
	sparkBins    = 96

	second = bucket.Instant(time.Second / time.Microsecond)
)

// widening contains the factors between bin widths: 1 µs, 2 µs, 10 µs and so on to 1 s, 5 s, 10 s, 30 s, 1 m, 5 m,
// 10 m, 30 m, 1 h, 2 h, 6 h, 12 h and 1 d. After that, widths double.
var widening = [...]bucket.Instant{2, 5, 2, 5, 2, 5, 2, 5, 2, 5, 2, 5, 5, 2, 3, 2, 5, 2, 3, 2, 2, 3, 2, 2}

// A timeline counts events over the time of a trace in bounded memory. Events may come in any order. All bins have
// the same width and start at multiples of it. Use [newTimeline]; the zero timeline is not valid.
type timeline struct {
	most  int // maximum number of bins
	steps int // number of applied widening factors
	width bucket.Instant

	first bucket.Instant // start of the first bin, in widths
	bins  int            // number of bins up to the last event
	all   []series

	bin      int // bin of the last event
	from, to bucket.Instant
	partial  bool // some events are not at whole seconds
}

// A series counts events per bin of a timeline. Missing bins at its end are 0.
type series []int64

func newTimeline(most int) timeline { return timeline{most: most, width: 1} }

func (t *timeline) newSeries() series {
	s := make(series, t.most)
	t.all = append(t.all, s)
	return s
}

// binAt returns the bin of an event. It may widen the bins, so the result is valid until the next call.
func (t *timeline) binAt(i bucket.Instant) int {
	if i%second != 0 {
		t.partial = true
	}
	if i < t.from || i >= t.to {
		t.move(i)
	}
	return t.bin
}

// move makes the bin of i the current bin.
func (t *timeline) move(i bucket.Instant) {
	if t.bins == 0 {
		t.first, t.bins = i, 1
	}
	n := floorDiv(i, t.width)
	for max(n, t.first+bucket.Instant(t.bins)-1)-min(n, t.first) >= bucket.Instant(t.most) {
		t.widen()
		n = floorDiv(i, t.width)
	}
	if earlier := int(t.first - n); earlier > 0 {
		for _, s := range t.all {
			copy(s[earlier:], s[:t.bins])
			clear(s[:earlier])
		}
		t.first, t.bins = n, t.bins+earlier
	}
	t.bin = int(n - t.first)
	t.bins = max(t.bins, t.bin+1)
	t.from, t.to = n*t.width, (n+1)*t.width
}

// widen merges adjacent bins.
func (t *timeline) widen() {
	by := bucket.Instant(2)
	if t.steps < len(widening) {
		by = widening[t.steps]
	}
	t.steps++
	first := floorDiv(t.first, by)
	offset := int(t.first - first*by)
	for _, s := range t.all {
		for i := range s[:t.bins] {
			n := s[i]
			s[i] = 0
			s[(offset+i)/int(by)] += n
		}
	}
	t.bins = (offset+t.bins-1)/int(by) + 1
	t.first, t.width = first, t.width*by
}

// floorDiv divides and rounds down.
func floorDiv(i, by bucket.Instant) bucket.Instant {
	if i < 0 {
		return -((by - 1 - i) / by)
	}
	return i / by
}

// A view shows a timeline in fewer bins with a round width.
type view struct {
	start, width bucket.Instant
	bins         int
	by, offset   int // timeline bins per bin, and those missing in the first bin
}

// roundWidths are the bin widths of views below a day. Longer widths double.
var roundWidths = [...]bucket.Instant{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
	second, 2 * second, 5 * second, 10 * second, 15 * second, 20 * second, 30 * second,
	60 * second, 120 * second, 300 * second, 600 * second, 900 * second, 1200 * second, 1800 * second,
	3600 * second, 7200 * second, 4 * 3600 * second, 6 * 3600 * second, 12 * 3600 * second, day}

// widths yields all bin widths of views in ascending order.
func widths(yield func(bucket.Instant) bool) {
	for _, width := range roundWidths {
		if !yield(width) {
			return
		}
	}
	for width := 2 * day; yield(width); width *= 2 {
	}
}

// view returns t in at most the given number of bins, which must be positive. If all times are whole seconds, a
// bin is at least one second.
func (t *timeline) view(most int) (v view) {
	for width := range widths {
		if width%t.width != 0 || width < second && !t.partial && width < t.width*bucket.Instant(t.bins) {
			continue
		}
		by := width / t.width
		first := floorDiv(t.first, by)
		last := floorDiv(t.first+bucket.Instant(max(t.bins, 1))-1, by)
		v = view{start: first * width, width: width, bins: int(last - first + 1), by: int(by), offset: int(t.first - first*by)}
		if v.bins <= most {
			break
		}
	}
	return v
}

// binCounts returns the counts of s per bin of v.
func (v view) binCounts(s series) series {
	sums := make(series, v.bins)
	for i, n := range s {
		if n != 0 {
			sums[(v.offset+i)/v.by] += n
		}
	}
	return sums
}

func sum(all ...series) series {
	total := make(series, len(all[0]))
	for _, s := range all {
		for i, n := range s {
			total[i] += n
		}
	}
	return total
}

// startOf returns the start of a bin.
func (v view) startOf(bin int) bucket.Instant { return v.start + bucket.Instant(bin)*v.width }

// ticks returns the bins at round times that have the given minimum distance. If there are none, it returns the
// first bin.
func (v view) ticks(apart int) (bins []int) {
	var step bucket.Instant
	for step = range widths {
		if step%v.width == 0 && step >= bucket.Instant(apart)*v.width {
			break
		}
	}
	for bin := range v.bins {
		if v.startOf(bin)%step == 0 {
			bins = append(bins, bin)
		}
	}
	if bins == nil {
		return []int{0}
	}
	return bins
}

// clockLayout returns a time layout with the parts that differ between bins.
func (v view) clockLayout() string {
	switch {
	case v.width >= day:
		return "2006-01-02"
	case v.width*bucket.Instant(v.bins) > day:
		return "01-02 15:04"
	case v.width >= 60*second:
		return "15:04"
	case v.width >= second:
		return "15:04:05"
	case v.width >= 1000:
		return "15:04:05.000"
	}
	return "15:04:05.000000"
}

// label formats the start of a bin in a trace that ends at last.
func (v view) label(bin int, last bucket.Instant) string {
	if last < dateFrom {
		return formatInstant(v.startOf(bin), last)
	}
	return v.startOf(bin).Time().Format(v.clockLayout())
}
