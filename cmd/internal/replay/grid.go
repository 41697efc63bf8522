// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"slices"
	"strings"

	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/cmd/internal/table"
)

// minName is how much of the names in the first column is to be seen before columns give
// way to them.
const minName = 16

// A grid is a table that can do with less room.
type grid struct {
	headings int // lines
	right    []bool
	rows     [][]string
	givesWay []int // columns that narrow terminals go without, the first one first
}

// newGrid returns a grid with headings as [table.New] has them.
func newGrid(headings ...string) *grid {
	g := &grid{headings: 1}
	for i, h := range headings {
		var right bool
		headings[i], right = strings.CutPrefix(h, ">")
		g.right = append(g.right, right)
	}
	g.rows = append(g.rows, headings)
	return g
}

// add adds a row. Nothing in it does more than stand there.
func (g *grid) add(cells ...string) {
	for i := range cells {
		cells[i] = display.Inert(cells[i])
	}
	g.rows = append(g.rows, cells)
}

// drop removes a column.
func (g *grid) drop(column int) {
	g.right = slices.Delete(g.right, column, column+1)
	for i, row := range g.rows {
		g.rows[i] = slices.Delete(row, column, column+1)
	}
	g.givesWay = slices.DeleteFunc(g.givesWay, func(c int) bool { return c == column })
	for i, c := range g.givesWay {
		if c > column {
			g.givesWay[i]--
		}
	}
}

// width is how wide the grid is.
func (g *grid) width() int { return slices.Max(g.widths()) }

func (g *grid) widths() (widths []int) {
	for _, line := range g.lines() {
		widths = append(widths, display.Width(line))
	}
	return widths
}

// fit makes the grid so narrow, as far as it can be: first names are cut, and then
// columns go.
func (g *grid) fit(columns int) {
	for {
		over := g.width() - columns
		if over <= 0 {
			return
		}
		longest := 0
		for _, row := range g.rows {
			longest = max(longest, display.Width(row[0]))
		}
		if room := longest - over; room >= minName || len(g.givesWay) == 0 {
			for _, row := range g.rows {
				row[0] = display.Cut(row[0], max(room, minName))
			}
			return
		}
		g.drop(g.givesWay[0])
	}
}

// lines lays the grid out.
func (g *grid) lines() []string {
	headings := make([]string, len(g.right))
	for i, heading := range g.rows[0] {
		if g.right[i] {
			heading = ">" + heading
		}
		headings[i] = heading
	}
	t := table.New(headings...)
	for _, row := range g.rows[1:] {
		t.Add(row...)
	}
	var b strings.Builder
	_, _ = t.WriteTo(&b) // never fails
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// write writes the grid below an empty line, with bars in that colour.
func (g *grid) write(b *strings.Builder, on Screen, bars colour) {
	if on.Fit {
		g.fit(on.columns())
	}
	b.WriteString("\n")
	for i, line := range g.lines() {
		if line = on.line(line); i < g.headings {
			line = on.paint(line, strong)
		} else if bars != "" {
			line = on.paintBars(line, bars)
		}
		b.WriteString(line + "\n")
	}
}

// writeBody writes the grid without its headings, and no empty line.
func (g *grid) writeBody(b *strings.Builder, on Screen) {
	for _, line := range g.lines()[g.headings:] {
		b.WriteString(on.line(line) + "\n")
	}
}

// notes writes notes below an empty line, or nothing where there are none.
func (s Screen) notes(b *strings.Builder, notes []string) {
	if len(notes) == 0 {
		return
	}
	b.WriteString("\n")
	for _, note := range notes {
		for _, line := range s.wrap(display.Inert(note)) {
			b.WriteString(s.paint(line, faint) + "\n")
		}
	}
}

// wrap breaks a sentence between words, where it has to fit.
func (s Screen) wrap(text string) []string {
	if !s.Fit {
		return []string{text}
	}
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case display.Width(*last)+1+display.Width(word) <= s.columns():
			*last += " " + word
		default:
			lines = append(lines, "  "+word) // below the first word, as it goes on
		}
	}
	return lines
}
