// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/metehq/mete/bench/subject"
)

// A table is written as Markdown with aligned columns: to be read as it stands
// and to be pasted. The first row is its head.
type table [][]string

func (t *table) add(cells ...string) { *t = append(*t, cells) }

func (t table) write(w io.Writer) {
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
			for i, width := range widths {
				if i == 0 {
					fmt.Fprintf(w, "| %s |", strings.Repeat("-", width))
				} else {
					fmt.Fprintf(w, " %s: |", strings.Repeat("-", width-1))
				}
			}
			fmt.Fprintln(w)
		}
	}
}

// writeScenario writes one scenario's results, if there are any.
func writeScenario(w io.Writer, sc scenario, results []result) {
	head := []string{"", "serial ns", "parallel ns", "serial ÷ mete", "parallel ÷ mete", "allocs a call"}
	figures := []func(result) *stat{serial, parallel}
	if sc.kind == memory {
		head = []string{"", "bytes a key", "objects a key", "bytes ÷ mete"}
		figures = []func(result) *stat{bytes, objects}
	}
	rows, notes := table{head}, []string(nil)
	mete := find(results, sc.name, subject.Mete)
	for _, r := range results {
		if r.Scenario != sc.name {
			continue
		}
		row := []string{r.Subject}
		for _, of := range figures {
			row = append(row, of(r).String())
		}
		row = append(row, ratio(r, mete, figures[0]))
		if sc.kind != memory {
			row = append(row, ratio(r, mete, parallel), r.Allocs.String())
		}
		rows.add(row...)
		if r.Wrong > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d calls were answered wrongly.", r.Subject, r.Wrong))
		}
	}
	if len(rows) == 1 {
		return
	}
	fmt.Fprintf(w, "\n### %s (`%s`)\n\n", sc.title, sc.name)
	rows.write(w)
	for _, note := range notes {
		fmt.Fprintf(w, "\n%s\n", note)
	}
}

func ratio(r result, mete *result, of func(result) *stat) string {
	if mete == nil || of(*mete).Median <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", of(r).Median/of(*mete).Median)
}

// String shows the median, and the range where it is wide.
func (s *stat) String() string {
	text := number(s.Median)
	if s.Max > wide*s.Min && s.Max-s.Min > 1 {
		text += fmt.Sprintf(" [%.0f–%.0f]", s.Min, s.Max)
	}
	return text
}

// wide is the ratio of the largest round to the smallest from which on the
// range is worth showing.
const wide = 1.2

// number drops decimals that say nothing.
func number(f float64) string {
	if f >= 100 || f == 0 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.1f", f)
}

func writeVerdicts(w io.Writer, verdicts []verdict) {
	if len(verdicts) == 0 {
		return
	}
	fmt.Fprintf(w, "\n### Targets: mete against the best of %s\n\n", strings.Join(compared, "; "))
	rows := table{{"", "mete", "best rival", "", "ratio", "target", "met"}}
	for _, v := range verdicts {
		goal, met := fmt.Sprintf("≥ %.1f×", v.Factor), "yes"
		if v.Factor == 0 {
			goal = fmt.Sprintf("≤ %v", v.Most)
		}
		if !v.Met {
			met = "**no**"
		}
		shown := ""
		if v.Factor > 0 {
			shown = fmt.Sprintf("%.2f×", v.Ratio)
		}
		rows.add(v.Scenario+", "+v.Figure, number(v.Mete), number(v.Best), v.Rival, shown, goal, met)
	}
	rows.write(w)
}
