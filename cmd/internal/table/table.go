// SPDX-License-Identifier: Apache-2.0

// Package table formats text in aligned columns.
package table

import (
	"io"
	"strings"

	"github.com/metehq/mete/cmd/internal/display"
)

// A Table has rows and headings. The zero Table is empty. It is not safe for concurrent use.
type Table struct {
	// Indent is the prefix of every line.
	Indent string

	right []bool
	rows  [][]string
}

// New returns a table with these headings. A heading that begins with ">" aligns its column to the right.
func New(headings ...string) *Table {
	t := &Table{right: make([]bool, len(headings))}
	for i, h := range headings {
		headings[i], t.right[i] = strings.CutPrefix(h, ">")
	}
	t.rows = append(t.rows, headings)
	return t
}

// Add adds a row. It needs one cell per heading.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// WriteTo writes the table.
func (t *Table) WriteTo(w io.Writer) (int64, error) {
	widths := make([]int, len(t.right))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], display.Width(cell))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-display.Width(cell))
			if t.right[i] {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(t.Indent+line.String(), " ") + "\n")
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}
