// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/metehq/mete/bench/report"
)

func (o Outcome) writeScenario(w io.Writer, sc Scenario) {
	head := []string{"", "callers", "takes/s"}
	for _, name := range o.bases {
		head = append(head, "÷ "+name)
	}
	head = append(head, "p50 µs", "p99 µs")
	hasCPU := slices.ContainsFunc(o.Results, func(r Result) bool { return r.CPU != nil })
	if hasCPU {
		head = append(head, "server CPU µs/take")
	}
	rows, notes := report.Table{head}, []string(nil)
	for _, r := range o.Results {
		switch {
		case r.Scenario != sc.Name:
		case r.Failed != "":
			notes = append(notes, fmt.Sprintf("%s, %d callers: left out: %s", r.Subject, r.Callers, r.Failed))
		default:
			rows.Add(o.row(r, hasCPU)...)
		}
	}
	if len(rows) == 1 && len(notes) == 0 {
		return
	}
	fmt.Fprintf(w, "\n### %s (`%s`)\n\n", sc.Title, sc.Name)
	rows.Write(w)
	for _, note := range notes {
		fmt.Fprintf(w, "\n%s\n", note)
	}
}

func (o Outcome) row(r Result, hasCPU bool) []string {
	row := []string{r.Subject, strconv.Itoa(r.Callers), r.Takes.Format(thousands)}
	for _, name := range o.bases {
		text := ""
		if ratio := r.Ratios[name]; ratio > 0 {
			text = fmt.Sprintf("%.2f", ratio)
		}
		row = append(row, text)
	}
	row = append(row, r.P50.Format(microseconds), r.P99.Format(microseconds))
	if !hasCPU {
		return row
	}
	if r.CPU == nil {
		return append(row, "")
	}
	return append(row, r.CPU.Format(microseconds))
}

func thousands(f float64) string { return report.Number(f/1000) + "k" }

// microseconds formats ns. Leased takes need decimals.
func microseconds(ns float64) string {
	if ns < 10_000 {
		return fmt.Sprintf("%.2f", ns/1000)
	}
	return report.Number(ns / 1000)
}

func writeVerdicts(w io.Writer, verdicts []Verdict) {
	if len(verdicts) == 0 {
		return
	}
	fmt.Fprint(w, "\n### Targets\n\n")
	rows := report.Table{{"", "", "callers", "figure", "against", "ratio", "target", "met"}}
	for _, v := range verdicts {
		got, goal, met := fmt.Sprintf("%.2f×", v.Ratio), fmt.Sprintf("≥ %v×", v.Factor), "yes"
		switch {
		case v.Added > 0:
			got, goal = fmt.Sprintf("%+d µs", v.More.Microseconds()), fmt.Sprintf("≤ %+d µs", v.Added.Microseconds())
		case v.Most > 0:
			goal = fmt.Sprintf("≤ %v×", v.Most)
		}
		if !v.Met {
			met = "**no**"
		}
		rows.Add(v.Subject, v.Scenario, strconv.Itoa(v.Callers), string(v.Figure), v.Rival, got, goal, met)
	}
	rows.Write(w)
}
