// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"time"

	"github.com/metehq/mete/bench/report"
)

// A Result holds the figures of an entrant in a cell, or the reason for their absence. Times are in ns.
type Result struct {
	Scenario string       `json:"scenario"`
	Callers  int          `json:"callers"`
	Subject  string       `json:"subject"`
	Takes    *report.Stat `json:"takes_per_second,omitempty"`
	P50      *report.Stat `json:"p50_ns,omitempty"`
	P99      *report.Stat `json:"p99_ns,omitempty"`
	CPU      *report.Stat `json:"server_cpu_ns_per_take,omitempty"` // nil if not measured

	// Ratios are the takes per second divided by each base in the same cell.
	Ratios map[string]float64 `json:"takes_to,omitempty"`

	Failed string `json:"failed,omitempty"`
}

func summarize(at Cell, entrant string, samples []Sample, failed error) Result {
	r := Result{Scenario: at.Scenario.Name, Callers: at.Callers, Subject: entrant}
	if failed != nil {
		r.Failed = failed.Error()
		return r
	}
	figure := func(of func(Sample) float64) *report.Stat {
		values := make([]float64, len(samples))
		for i, s := range samples {
			values[i] = of(s)
		}
		return report.NewStat(values)
	}
	nanoseconds := func(of func(Sample) time.Duration) *report.Stat {
		return figure(func(s Sample) float64 { return float64(of(s)) })
	}
	r.Takes = figure(func(s Sample) float64 { return s.Takes })
	r.P50 = nanoseconds(func(s Sample) time.Duration { return s.P50 })
	r.P99 = nanoseconds(func(s Sample) time.Duration { return s.P99 })
	if cpu := nanoseconds(func(s Sample) time.Duration { return s.CPU }); cpu.Max > 0 {
		r.CPU = cpu
	}
	return r
}

func relate(results []Result, bases []string) {
	for i := range results {
		r := &results[i]
		for _, name := range bases {
			base := find(results, r.Scenario, r.Callers, name)
			if base == nil || r.Failed != "" {
				continue
			}
			if r.Ratios == nil {
				r.Ratios = map[string]float64{}
			}
			r.Ratios[name] = r.Takes.Median / base.Takes.Median
		}
	}
}

func find(results []Result, scenario string, callers int, entrant string) *Result {
	for i := range results {
		r := &results[i]
		if r.Scenario == scenario && r.Callers == callers && r.Subject == entrant && r.Failed == "" {
			return r
		}
	}
	return nil
}
