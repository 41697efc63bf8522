// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/metehq/mete/bench/report"
)

// writeScenario writes one scenario's results, if there are any, and below them
// who has none and why.
func writeScenario(w io.Writer, sc scenario, results []result) {
	rows, notes := report.Table{{"", "callers", "takes/s", "÷ redis_rate", "p50 µs", "p99 µs", "server CPU µs/take"}}, []string(nil)
	for _, r := range results {
		if r.Scenario != sc.name {
			continue
		}
		if r.Failed != "" {
			notes = append(notes, fmt.Sprintf("%s, %d callers: left out: %s", r.Subject, r.Callers, r.Failed))
			continue
		}
		ratio := ""
		if r.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", r.Ratio)
		}
		rows.Add(r.Subject, strconv.Itoa(r.Callers), r.Takes.Format(thousands), ratio,
			r.P50.Format(microseconds), r.P99.Format(microseconds), r.CPU.Format(microseconds))
	}
	if len(rows) == 1 && len(notes) == 0 {
		return
	}
	fmt.Fprintf(w, "\n### %s (`%s`)\n\n", sc.title, sc.name)
	rows.Write(w)
	for _, note := range notes {
		fmt.Fprintf(w, "\n%s\n", note)
	}
}

func thousands(f float64) string { return report.Number(f/1000) + "k" }

// microseconds shows nanoseconds. Leases make them few.
func microseconds(ns float64) string {
	if ns < 10_000 {
		return fmt.Sprintf("%.2f", ns/1000)
	}
	return report.Number(ns / 1000)
}

func writeVerdicts(w io.Writer, verdicts []verdict) {
	if len(verdicts) == 0 {
		return
	}
	fmt.Fprint(w, "\n### Targets\n\n")
	rows := report.Table{{"", "", "callers", "figure", "against", "ratio", "target", "met"}}
	for _, v := range verdicts {
		goal, met := fmt.Sprintf("≥ %v×", v.Factor), "yes"
		if v.Most > 0 {
			goal = fmt.Sprintf("≤ %v×", v.Most)
		}
		if !v.Met {
			met = "**no**"
		}
		rows.Add(v.Subject, v.Scenario, strconv.Itoa(v.Callers), v.Figure, v.Rival, fmt.Sprintf("%.2f×", v.Ratio), goal, met)
	}
	rows.Write(w)
}
