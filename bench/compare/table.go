// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/metehq/mete/bench/report"
	"github.com/metehq/mete/bench/subject"
)

func writeScenario(w io.Writer, sc scenario, results []result) {
	head := []string{"", "serial ns", "parallel ns", "serial ÷ mete", "parallel ÷ mete", "allocs a call"}
	figures := []func(result) *report.Stat{serialRate, parallelRate}
	if sc.kind == memory {
		head = []string{"", "bytes a key", "objects a key", "bytes ÷ mete"}
		figures = []func(result) *report.Stat{bytes, objects}
	}
	rows, notes := report.Table{head}, []string(nil)
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
			row = append(row, ratio(r, mete, parallelRate), r.Allocs.String())
		}
		rows.Add(row...)
		if r.Wrong > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d calls were answered wrongly.", r.Subject, r.Wrong))
		}
	}
	if len(rows) == 1 {
		return
	}
	fmt.Fprintf(w, "\n### %s (`%s`)\n\n", sc.title, sc.name)
	rows.Write(w)
	for _, note := range notes {
		fmt.Fprintf(w, "\n%s\n", note)
	}
}

func ratio(r result, mete *result, of func(result) *report.Stat) string {
	if mete == nil || of(*mete).Median <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", of(r).Median/of(*mete).Median)
}

func writeVerdicts(w io.Writer, verdicts []verdict) {
	if len(verdicts) == 0 {
		return
	}
	fmt.Fprintf(w, "\n### Targets: mete against the best of %s\n\n", strings.Join(compared, "; "))
	rows := report.Table{{"", "", "mete", "best rival", "", "ratio", "target", "met"}}
	for _, v := range verdicts {
		goal, met := fmt.Sprintf("≥ %.1f×", v.Factor), "yes"
		switch {
		case v.Times > 0:
			goal = fmt.Sprintf("≤ %.1f×", v.Times)
		case v.Factor == 0:
			goal = fmt.Sprintf("≤ %v", v.Most)
		}
		if !v.Met {
			met = "**no**"
		}
		shown := ""
		if v.Factor > 0 || v.Times > 0 {
			shown = fmt.Sprintf("%.2f×", v.Ratio)
		}
		rows.Add(v.Scenario+", "+v.Figure, v.Subject, report.Number(v.Mete), report.Number(v.Best), v.Rival, shown, goal, met)
	}
	rows.Write(w)
}
