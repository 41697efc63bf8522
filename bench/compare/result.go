// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// A stat sums up a figure's rounds.
type stat struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// A result is what a scenario says about one subject. Times are nanoseconds of
// wall time a call; figures that the scenario does not have are nil.
type result struct {
	Scenario string `json:"scenario"`
	Subject  string `json:"subject"`
	Serial   *stat  `json:"serial_ns,omitempty"`
	Parallel *stat  `json:"parallel_ns,omitempty"`
	Allocs   *stat  `json:"allocs_per_call,omitempty"`
	Bytes    *stat  `json:"bytes_per_key,omitempty"`
	Objects  *stat  `json:"objects_per_key,omitempty"`
	Wrong    int    `json:"wrong_answers,omitempty"`
}

func summarize(sc scenario, subject string, samples []sample) result {
	r := result{Scenario: sc.name, Subject: subject}
	figure := func(of func(sample) float64) *stat {
		values := make([]float64, len(samples))
		for i, s := range samples {
			values[i] = of(s)
		}
		return newStat(values)
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

// newStat sorts values, of which there is at least one.
func newStat(values []float64) *stat {
	slices.Sort(values)
	n := len(values)
	return &stat{Median: (values[(n-1)/2] + values[n/2]) / 2, Min: values[0], Max: values[n-1]}
}

// find returns the result of a scenario and a subject, or nil.
func find(results []result, scenario, subject string) *result {
	for i := range results {
		if results[i].Scenario == scenario && results[i].Subject == subject {
			return &results[i]
		}
	}
	return nil
}
