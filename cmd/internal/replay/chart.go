// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/display"
)

const (
	minChart = 20 // minimum columns of a chart without its labels
	maxBar   = 6  // maximum columns of one bar
)

// A chart shows counts over the time of a trace as rows of bars made of block characters.
type chart struct {
	line *timeline
	last bucket.Instant // end of the trace
	rows []chartRow
}

// A chartRow is one row of bars with its own scale. A row without counts is omitted.
type chartRow struct {
	name   string
	counts series
	height int // lines
	color  color
}

// writeTo draws the chart, unless all requests have the same time.
func (c chart) writeTo(b *strings.Builder, on Screen) {
	c.rows = slices.DeleteFunc(c.rows, func(r chartRow) bool { return slices.Max(r.counts) == 0 })
	if len(c.rows) == 0 || c.line.bins < 2 {
		return
	}
	names, numbers := 0, 0
	for _, row := range c.rows {
		names = max(names, len(row.name))
		numbers = max(numbers, digits(slices.Max(row.counts)))
	}
	view := c.line.view(max(on.columns()-names-numbers-len("   99"), minChart)) // two digits, because view may merge several bins
	for _, row := range c.rows {
		numbers = max(numbers, digits(slices.Max(view.binCounts(row.counts))))
	}
	left := names + 1 + numbers
	bar := min(maxBar, max(1, (on.columns()-left-len("  "))/view.bins))
	fmt.Fprintf(b, "\n%s\n", on.paint("OVER TIME", strong)+", in steps of "+formatDuration(view.width))
	for _, row := range c.rows {
		row.writeTo(b, on, view, names, numbers, bar)
	}
	ticks, labels := c.axis(view, bar, on.columns()-left-len("  "))
	pad := strings.Repeat(" ", left)
	fmt.Fprintf(b, "%s %s\n%s  %s\n", pad, on.paint("└"+ticks, faint), pad, labels)
}

// writeTo draws one row. Every nonzero count is visible.
func (r chartRow) writeTo(b *strings.Builder, on Screen, view view, names, numbers, bar int) {
	counts := view.binCounts(r.counts)
	most := slices.Max(counts)
	for line := r.height - 1; line >= 0; line-- {
		name, number, edge := "", "", "│"
		if line == r.height-1 {
			name, number, edge = r.name, strconv.FormatInt(most, 10), "┤"
		}
		var bars strings.Builder
		for _, n := range counts {
			full := int(float64(n) / float64(most) * float64(8*r.height))
			if n > 0 {
				full = max(full, 1)
			}
			bars.WriteString(strings.Repeat(eighths(upward, min(max(full-8*line, 0), 8)), bar))
		}
		fmt.Fprintf(b, "%-*s %*s %s%s\n", names, name, numbers, number, on.paint(edge, faint), on.paint(strings.TrimRight(bars.String(), " "), r.color))
	}
}

func digits(n int64) int { return len(strconv.FormatInt(n, 10)) }

// axis returns the axis line and its labels: round times or, if there are none, the start. room is the width in
// columns.
func (c chart) axis(view view, bar, room int) (ticks, labels string) {
	space := (display.Width(view.label(0, c.last)) + 2 + bar - 1) / bar // in bins
	if last := view.label(view.bins-1, c.last); c.last < dateFrom {
		space = (len(last) + 2 + bar - 1) / bar
	}
	var line, text strings.Builder
	for _, bin := range view.ticks(space) {
		label, column := view.label(bin, c.last), bin*bar
		if column > 0 && column+display.Width(label) > room {
			break
		}
		line.WriteString(strings.Repeat("─", column-display.Width(line.String())) + "┬")
		text.WriteString(strings.Repeat(" ", column-text.Len()) + label)
	}
	line.WriteString(strings.Repeat("─", max(view.bins*bar-display.Width(line.String()), 0)))
	return line.String(), text.String()
}
