// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/metehq/mete/bench/report"
	"github.com/metehq/mete/bench/subject/inredis"
)

// A result is what a cell says about one subject: figures, or why there are
// none. Times are nanoseconds.
type result struct {
	Scenario string       `json:"scenario"`
	Callers  int          `json:"callers"`
	Subject  string       `json:"subject"`
	Takes    *report.Stat `json:"takes_per_second,omitempty"`
	P50      *report.Stat `json:"p50_ns,omitempty"`
	P99      *report.Stat `json:"p99_ns,omitempty"`
	CPU      *report.Stat `json:"server_cpu_ns_per_take,omitempty"`
	Ratio    float64      `json:"takes_to_redis_rate,omitempty"` // 0 where that was not measured
	Failed   string       `json:"failed,omitempty"`
}

func summarize(at cell, subject string, samples []sample, failed error) result {
	r := result{Scenario: at.scenario.name, Callers: at.callers, Subject: subject}
	if failed != nil {
		r.Failed = failed.Error()
		return r
	}
	figure := func(of func(sample) float64) *report.Stat {
		values := make([]float64, len(samples))
		for i, s := range samples {
			values[i] = of(s)
		}
		return report.NewStat(values)
	}
	nanoseconds := func(of func(sample) time.Duration) *report.Stat {
		return figure(func(s sample) float64 { return float64(of(s)) })
	}
	r.Takes = figure(func(s sample) float64 { return s.takes })
	r.P50 = nanoseconds(func(s sample) time.Duration { return s.p50 })
	r.P99 = nanoseconds(func(s sample) time.Duration { return s.p99 })
	r.CPU = nanoseconds(func(s sample) time.Duration { return s.cpu })
	return r
}

// relate fills in how many times as many takes everyone does as redis_rate.
func relate(results []result) {
	for i := range results {
		r := &results[i]
		base := find(results, r.Scenario, r.Callers, inredis.RedisRate)
		if base != nil && r.Failed == "" {
			r.Ratio = r.Takes.Median / base.Takes.Median
		}
	}
}

// find returns the result of a subject in a cell, or nil where it has no
// figures.
func find(results []result, scenario string, callers int, subject string) *result {
	for i := range results {
		r := &results[i]
		if r.Scenario == scenario && r.Callers == callers && r.Subject == subject && r.Failed == "" {
			return r
		}
	}
	return nil
}
