// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/metehq/mete/bench/report"

// A result holds the figures of one subject in a scenario. Times are wall time in ns per call. Missing
// figures are nil.
type result struct {
	Scenario string       `json:"scenario"`
	Subject  string       `json:"subject"`
	Serial   *report.Stat `json:"serial_ns,omitempty"`
	Parallel *report.Stat `json:"parallel_ns,omitempty"`
	Allocs   *report.Stat `json:"allocs_per_call,omitempty"`
	Bytes    *report.Stat `json:"bytes_per_key,omitempty"`
	Objects  *report.Stat `json:"objects_per_key,omitempty"`
	Wrong    int          `json:"wrong_answers,omitempty"`
}

func summarize(sc scenario, subject string, samples []sample) result {
	r := result{Scenario: sc.name, Subject: subject}
	figure := func(of func(sample) float64) *report.Stat {
		values := make([]float64, len(samples))
		for i, s := range samples {
			values[i] = of(s)
		}
		return report.NewStat(values)
	}
	if sc.kind == memory {
		r.Bytes = figure(func(s sample) float64 { return s.bytes })
		r.Objects = figure(func(s sample) float64 { return s.objects })
	} else {
		r.Serial = figure(func(s sample) float64 { return s.serial })
		r.Parallel = figure(func(s sample) float64 { return s.parallel })
		r.Allocs = figure(func(s sample) float64 { return s.allocs })
	}
	for _, s := range samples {
		r.Wrong += s.wrong
	}
	return r
}

func find(results []result, scenario, subject string) *result {
	for i := range results {
		if results[i].Scenario == scenario && results[i].Subject == subject {
			return &results[i]
		}
	}
	return nil
}
