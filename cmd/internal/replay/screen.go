// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"strings"

	"github.com/metehq/mete/cmd/internal/display"
)

// A Screen is what a report in text is shown on. The zero Screen is a file.
type Screen struct {
	Columns int  // how wide charts may be; 0 is 80
	Fit     bool // tables must not be wider either: columns are left out, and names cut
	Colour  bool
}

// fileColumns is how wide charts in files are.
const fileColumns = 80

func (s Screen) columns() int {
	if s.Columns == 0 {
		return fileColumns
	}
	return s.Columns
}

// A colour is how a terminal is asked for it.
type colour string

const (
	strong  colour = "\x1b[1m"
	faint   colour = "\x1b[2m"
	red     colour = "\x1b[31m"
	green   colour = "\x1b[32m"
	magenta colour = "\x1b[35m"
	normal  colour = "\x1b[m"
)

// paint colours text that stands on one line.
func (s Screen) paint(text string, c colour) string {
	if !s.Colour || text == "" {
		return text
	}
	return string(c) + text + string(normal)
}

// line ends what is to be one line: it fits, and nothing in it does more than stand
// there. Painting comes after that.
func (s Screen) line(text string) string {
	text = display.Inert(text)
	if s.Fit {
		text = display.Cut(text, s.columns())
	}
	return text
}

// blocks are what bars are made of, from an eighth to the whole: to the right, and up.
const (
	across = "▏▎▍▌▋▊▉█"
	upward = "▁▂▃▄▅▆▇█"
)

// eighths returns so many eighths of a letter, from 0 to 8.
func eighths(blocks string, n int) string {
	const size = len("█")
	if n == 0 {
		return " "
	}
	return blocks[(n-1)*size : n*size]
}

// shareColumns is how long the bar of everything is.
const shareColumns = 10

// share is a bar as long as n is of all: only nothing has none, and only everything a
// full one.
func share(n, all int64) string {
	if n <= 0 || all <= 0 {
		return ""
	}
	parts := int(float64(n) / float64(all) * shareColumns * 8)
	if parts = max(parts, 1); n < all {
		parts = min(parts, shareColumns*8-1)
	}
	return strings.TrimRight(strings.Repeat("█", parts/8)+eighths(across, parts%8), " ")
}

// paintBars colours the bars in a line.
func (s Screen) paintBars(line string, c colour) string {
	if !s.Colour {
		return line
	}
	isBar := func(r rune) bool { return strings.ContainsRune(across, r) }
	var b strings.Builder
	for line != "" {
		start := strings.IndexFunc(line, isBar)
		if start < 0 {
			break
		}
		end := strings.IndexFunc(line[start:], func(r rune) bool { return !isBar(r) })
		if end < 0 {
			end = len(line) - start
		}
		b.WriteString(line[:start] + s.paint(line[start:start+end], c))
		line = line[start+end:]
	}
	return b.String() + line
}
