// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"
)

// A Table is written as Markdown with aligned columns. The first row is the head.
type Table [][]string

// Add adds a row with as many cells as the head.
func (t *Table) Add(cells ...string) { *t = append(*t, cells) }

// Write writes the table. It ignores errors of w.
func (t Table) Write(w io.Writer) {
	widths := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for n, row := range t {
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-len([]rune(cell)))
			if i == 0 {
				fmt.Fprintf(w, "| %s%s |", cell, pad)
			} else {
				fmt.Fprintf(w, " %s%s |", pad, cell)
			}
		}
		fmt.Fprintln(w)
		if n == 0 {
			writeRule(w, widths)
		}
	}
}

// writeRule writes the line below the head. The first column is text; the others are right-aligned figures.
func writeRule(w io.Writer, widths []int) {
	for i, width := range widths {
		if i == 0 {
			fmt.Fprintf(w, "| %s |", strings.Repeat("-", width))
		} else {
			fmt.Fprintf(w, " %s: |", strings.Repeat("-", max(width-1, 1)))
		}
	}
	fmt.Fprintln(w)
}
