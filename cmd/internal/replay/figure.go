// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/bucket"
)

const (
	figureBins  = 160 // maximum
	figureHigh  = 1000
	sparkHigh   = 26
	sparkShown  = 48 // maximum
	axisColumns = 56 // characters that fit below a figure on a phone
)

// A figure is a chart on a page: an SVG image and a table. Its data lets a script draw an interactive chart
// instead.
type figure struct {
	ID      string         `json:"id"`
	Title   string         `json:"title"`
	Unit    string         `json:"unit"`
	Summary string         `json:"summary"`
	Series  []figureSeries `json:"series"`
	X       []float64      `json:"x"`    // when bins begin, in seconds
	Step    float64        `json:"step"` // seconds
	Clock   bool           `json:"clock"`
	Stacked bool           `json:"stacked"`

	Lines      bool        `json:"-"`
	Wide, High int         `json:"-"`
	Top        string      `json:"-"` // what the upper edge stands for
	Paths      []path      `json:"-"`
	Axis       []axisLabel `json:"-"`
	Rows       []figureRow `json:"-"` // where there is anything
}

type figureSeries struct {
	Label  string `json:"label"`
	Color  string `json:"color"`
	Kind   string `json:"kind"`
	Dash   []int  `json:"dash,omitempty"`
	Values series `json:"values"`

	counts series
}

type (
	path      struct{ Class, D string }
	axisLabel struct{ At, Text string } // At is in percent
	figureRow struct {
		Time   string
		Counts []string
	}
)

// addFigure adds a stacked or line chart of counts over time. It adds nothing if there is nothing to draw.
func (d *document) addFigure(f figure, t *timeline, last bucket.Instant) {
	f.Series = slices.DeleteFunc(f.Series, func(s figureSeries) bool { return slices.Max(s.counts) == 0 })
	if t.bins < 2 || len(f.Series) == 0 {
		return
	}
	v := t.view(figureBins)
	f.Unit = "requests in " + formatDuration(v.width)
	f.Clock, f.Stacked, f.Step = last >= dateFrom, !f.Lines, float64(v.width)/float64(second)
	f.Wide, f.High = v.bins, figureHigh
	for i := range f.Series {
		f.Series[i].Values = v.binCounts(f.Series[i].counts)
	}
	for bin := range v.bins {
		f.X = append(f.X, float64(v.startOf(bin))/float64(second))
		row, all := figureRow{Time: v.label(bin, last)}, int64(0)
		for _, s := range f.Series {
			row.Counts = append(row.Counts, grouped(s.Values[bin]))
			all += s.Values[bin]
		}
		if all > 0 {
			f.Rows = append(f.Rows, row)
		}
	}
	f.drawStatic()
	f.Axis = v.axis(last)
	f.Summary = f.summary(v, last)
	d.Figures = append(d.Figures, &f)
}

// drawStatic draws the SVG chart.
func (f *figure) drawStatic() {
	var most int64
	sums := make([]series, len(f.Series))
	for i, s := range f.Series {
		if sums[i] = s.Values; i > 0 && f.Stacked {
			sums[i] = sum(sums[i-1], s.Values)
		}
		most = max(most, slices.Max(sums[i]))
	}
	f.Top = grouped(most)
	class := "fill-"
	if f.Lines {
		class = "line-"
	}
	for i, s := range slices.Backward(f.Series) { // lower areas are in front
		f.Paths = append(f.Paths, path{class + s.Color, outline(sums[i], most, figureHigh, !f.Lines)})
	}
}

// scaleHeight returns the height of n. Every positive count is visible.
func scaleHeight(n, most int64, high int) int {
	if n == 0 {
		return 0
	}
	return max(int(float64(n)/float64(most)*float64(high)+0.5), high/60, 1)
}

// outline returns a path with one step per bin. A closed path can be filled.
func outline(counts []int64, most int64, high int, closed bool) string {
	var b strings.Builder
	before := high
	if closed {
		fmt.Fprintf(&b, "M0 %d", high)
	} else {
		before = high - scaleHeight(counts[0], most, high)
		fmt.Fprintf(&b, "M0 %d", before)
	}
	for bin, n := range counts {
		if y := high - scaleHeight(n, most, high); y != before {
			fmt.Fprintf(&b, "H%dV%d", bin, y)
			before = y
		}
	}
	fmt.Fprintf(&b, "H%d", len(counts))
	if closed {
		fmt.Fprintf(&b, "V%dz", high)
	}
	return b.String()
}

// axis returns labels below the bins, as many as fit on a phone.
func (v view) axis(last bucket.Instant) (labels []axisLabel) {
	longest := max(len(v.label(0, last)), len(v.label(v.bins-1, last)))
	for _, bin := range v.ticks(max(v.bins*(longest+3)/axisColumns, 1)) {
		at := strconv.FormatFloat(100*float64(bin)/float64(v.bins), 'f', -1, 64)
		labels = append(labels, axisLabel{at[:min(len(at), 6)], v.label(bin, last)})
	}
	return labels
}

func (f *figure) summary(v view, last bucket.Instant) string {
	var parts []string
	for _, s := range f.Series {
		bin := slices.Index(s.Values, slices.Max(s.Values))
		parts = append(parts, fmt.Sprintf("%s at most %s, at %s", s.Label, grouped(s.Values[bin]), v.label(bin, last)))
	}
	return fmt.Sprintf("From %s to %s, in steps of %s: %s.", v.label(0, last), v.label(v.bins-1, last), formatDuration(v.width), strings.Join(parts, "; "))
}

// A spark is a small figure in a table.
type spark struct {
	Wide, High int
	Paths      []path
}

// newSpark draws two series of a rule, the first one behind the second.
func newSpark(t *timeline, behind, front string, counts [2]series) (s spark) {
	if t.bins == 0 {
		return spark{Wide: 1, High: sparkHigh}
	}
	v := t.view(sparkShown)
	s = spark{Wide: v.bins, High: sparkHigh}
	var most int64
	for _, c := range counts {
		if c != nil {
			most = max(most, slices.Max(v.binCounts(c)))
		}
	}
	for i, class := range [...]string{behind, front} {
		if counts[i] != nil {
			s.Paths = append(s.Paths, path{class, outline(v.binCounts(counts[i]), most, sparkHigh, true)})
		}
	}
	return s
}
