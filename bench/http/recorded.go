// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/metehq/mete/bench/contest"
	"github.com/metehq/mete/bench/report"
)

// The rival that is not on the Go module proxy, and so cannot run here. Its rows are an old measurement,
// scaled by the speed of plain net/http on this machine.
const (
	gubernator       = "gubernator, as recorded"
	gubernatorScaled = "gubernator, scaled by bare net/http"
)

// The measurement: 64 callers on two cores of an AMD EPYC (Zen 5), wrk 4.1.0 -t2 -c64, three times 4 s.
// The rival was gubernator v2 at 3182244, a single node with defaults, over HTTP in JSON.
var (
	recordedCallers = 64
	recordedPlain   = 95_800.0
	recordedRival   = map[string]record{
		"take":  {report.Stat{Median: 19_000, Min: 17_200, Max: 21_800}, 3130 * time.Microsecond, 8550 * time.Microsecond},
		"batch": {report.Stat{Median: 175_000, Min: 171_000, Max: 179_000}, 35_580 * time.Microsecond, 65_010 * time.Microsecond},
	}
)

type record struct {
	takes    report.Stat
	p50, p99 time.Duration
}

// recordedResults returns the rows of the rivals that cannot run, for the measured scenarios.
func recordedResults(results []contest.Result) []contest.Result {
	var rows []contest.Result
	speed := 0.0 // this machine's speed relative to the recorded one
	for _, r := range results {
		if r.Scenario == "take" && r.Callers == recordedCallers && r.Subject == plain && r.Failed == "" {
			speed = r.Takes.Median / recordedPlain
		}
	}
	for _, r := range results {
		old, known := recordedRival[r.Scenario]
		if !known || r.Callers != recordedCallers || r.Subject != mete {
			continue
		}
		rows = append(rows, old.row(r.Scenario, gubernator, 1))
		if speed > 0 {
			rows = append(rows, old.row(r.Scenario, gubernatorScaled, speed))
		}
	}
	return rows
}

func (r record) row(scenario, name string, speed float64) contest.Result {
	took := func(d time.Duration) *report.Stat { return report.NewStat([]float64{float64(d) / speed}) }
	return contest.Result{
		Scenario: scenario, Callers: recordedCallers, Subject: name,
		Takes: &report.Stat{Median: r.takes.Median * speed, Min: r.takes.Min * speed, Max: r.takes.Max * speed},
		P50:   took(r.p50), P99: took(r.p99),
	}
}
