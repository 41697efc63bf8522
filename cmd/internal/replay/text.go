// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"regexp"
	"slices"
	"strings"

	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/cmd/internal/table"
)

// A Screen describes the output of a text report. The zero Screen is a file.
type Screen struct {
	Columns int  // width of charts; 0 means 80
	Fit     bool // drop columns and cut names that are too wide
	Color   bool
}

const (
	fileColumns  = 80 // width of charts in files
	shareColumns = 10 // length of a full bar
	minName      = 16 // minimum width of the first column
)

func (s Screen) columns() int {
	if s.Columns == 0 {
		return fileColumns
	}
	return s.Columns
}

// A color is the escape sequence for a terminal color.
type color string

const (
	strong  color = "\x1b[1m"
	faint   color = "\x1b[2m"
	red     color = "\x1b[31m"
	green   color = "\x1b[32m"
	magenta color = "\x1b[35m"
	normal  color = "\x1b[m"
)

// paint colors text that has no line breaks.
func (s Screen) paint(text string, c color) string {
	if !s.Color || text == "" || c == "" {
		return text
	}
	return string(c) + text + string(normal)
}

// line cuts a line if it has to fit.
func (s Screen) line(text string) string {
	if s.Fit {
		text = display.Cut(text, s.columns())
	}
	return text
}

// wrap breaks a sentence into lines if it has to fit.
func (s Screen) wrap(text string) []string {
	if !s.Fit {
		return []string{text}
	}
	return display.Wrap(text, s.columns(), "", "  ")
}

// text formats a document.
func (d *document) text(on Screen) string {
	var b strings.Builder
	sentence := func(text string, c color) {
		for _, line := range on.wrap(text) {
			b.WriteString(on.paint(line, c) + "\n")
		}
	}
	for _, f := range d.Facts {
		b.WriteString(on.line((strings.ToLower(f.Name) + strings.Repeat(" ", 10))[:10]+f.Text) + "\n")
	}
	if d.Warning != "" {
		sentence("warning: "+d.Warning, red)
	}
	if len(d.Totals) > 0 {
		t := table.New("", ">", ">", "")
		for _, total := range d.Totals {
			t.Add(total.Name, total.Count, total.Share, total.Note)
		}
		b.WriteString("\n")
		for _, line := range linesOf(t)[1:] {
			b.WriteString(on.line(line) + "\n")
		}
		d.Bars.writeTo(&b, on)
	}
	for _, s := range d.Tables {
		s.writeTo(&b, on)
	}
	if len(d.Notes) > 0 {
		b.WriteString("\n")
	}
	for _, note := range d.Notes {
		sentence(note, faint)
	}
	return b.String()
}

func linesOf(t *table.Table) []string {
	var b strings.Builder
	_, _ = t.WriteTo(&b) // a strings.Builder never fails
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// layOut formats the columns of a sheet with a lower drop than the given one. names bounds the width of names.
// headings is the number of heading lines.
func (s *sheet) layOut(drop, names int) (lines []string, headings int) {
	var top, below []string
	grouped := false
	for _, c := range s.Columns {
		align := ""
		if c.Kind == "num" {
			align = ">"
		}
		switch {
		case c.drop >= drop || c.Kind == "spark":
		case c.Kind == "share":
			top, below = append(top, ">", ""), append(below, "", "")
		default:
			top, below = append(top, align+c.group), append(below, c.text)
			grouped = grouped || c.group != ""
		}
	}
	headings = 2
	if !grouped {
		for i := range top {
			top[i] += below[i]
		}
		headings = 1
	}
	t := table.New(top...)
	if grouped {
		t.Add(below...)
	}
	for _, row := range s.Rows {
		var cells []string
		for i, cell := range row {
			switch c := s.Columns[i]; {
			case c.drop >= drop || c.Kind == "spark":
			case c.Kind == "share":
				cells = append(cells, cell.Text, shareBar(cell.n, cell.all))
			case c.Kind == "bar":
				cells = append(cells, shareBar(cell.n, cell.all))
			case i == 0:
				cells = append(cells, display.Cut(cell.Text, names))
			default:
				cells = append(cells, cell.Text)
			}
		}
		t.Add(cells...)
	}
	return linesOf(t), headings
}

var barBlocks = regexp.MustCompile("[" + across + "]+")

// writeTo writes a sheet after an empty line. If it has to fit, it first cuts names and then drops columns.
func (s *sheet) writeTo(b *strings.Builder, on Screen) {
	drop, longest := 10, 0
	for _, c := range s.Columns {
		drop = max(drop, c.drop+1)
	}
	for _, row := range s.Rows {
		longest = max(longest, display.Width(row[0].Text))
	}
	lines, headings := s.layOut(drop, longest)
	for on.Fit {
		widest := 0
		for _, line := range lines {
			widest = max(widest, display.Width(line))
		}
		room := longest - (widest - on.columns())
		if widest <= on.columns() || drop == 1 && room < minName {
			break
		}
		if room >= minName || drop == 1 {
			lines, headings = s.layOut(drop, max(room, minName))
			break
		}
		drop--
		lines, headings = s.layOut(drop, longest)
	}
	paint := red
	if len(s.Rows) > 0 && slices.ContainsFunc(s.Rows[0], func(c cell) bool { return c.n > 0 && c.Color == "allowed" }) {
		paint = green
	}
	b.WriteString("\n")
	for i, line := range lines {
		if line = on.line(line); i < headings {
			line = on.paint(line, strong)
		} else {
			line = barBlocks.ReplaceAllStringFunc(line, func(bar string) string { return on.paint(bar, paint) })
		}
		b.WriteString(line + "\n")
	}
}

// Block characters from one eighth to full, horizontal and vertical.
const (
	across = "▏▎▍▌▋▊▉█"
	upward = "▁▂▃▄▅▆▇█"
)

func eighths(blocks string, n int) string {
	const size = len("█")
	if n == 0 {
		return " "
	}
	return blocks[(n-1)*size : n*size]
}

// shareBar returns a bar for the share of n in all. It is empty only for 0 and full only for all.
func shareBar(n, all int64) string {
	if n <= 0 || all <= 0 {
		return ""
	}
	parts := max(int(float64(n)/float64(all)*shareColumns*8), 1)
	if n < all {
		parts = min(parts, shareColumns*8-1)
	}
	return strings.TrimRight(strings.Repeat("█", parts/8)+eighths(across, parts%8), " ")
}
