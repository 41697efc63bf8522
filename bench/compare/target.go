// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"

	"github.com/metehq/mete/bench/report"
	"github.com/metehq/mete/bench/subject"
)

// A target is a promise about one figure of mete.
type target struct {
	scenario string
	figure   string
	of       func(result) *report.Stat

	// subject is one of mete's subjects; empty means subject.Mete.
	subject string

	// Exactly one of factor, times and most is set. The best rival's figure must be at least factor
	// times mete's. Or mete's figure must be at most times the figure of the subject than, or at most most.
	factor float64
	times  float64
	than   string
	most   float64
}

func serialRate(r result) *report.Stat   { return r.Serial }
func parallelRate(r result) *report.Stat { return r.Parallel }
func allocs(r result) *report.Stat       { return r.Allocs }
func bytes(r result) *report.Stat        { return r.Bytes }
func objects(r result) *report.Stat      { return r.Objects }

var targets = []target{
	{scenario: "hot", figure: "serial", of: serialRate, factor: 1.7},
	{scenario: "hot", figure: "parallel", of: parallelRate, factor: 1.7},
	{scenario: "deny", figure: "parallel", of: parallelRate, factor: 2.5},
	{scenario: "uniform", figure: "serial", of: serialRate, factor: 1.8},
	{scenario: "uniform", figure: "parallel", of: parallelRate, factor: 2},
	{scenario: "zipf", figure: "serial", of: serialRate, factor: 2.5},
	{scenario: "zipf", figure: "parallel", of: parallelRate, factor: 3},
	{scenario: "churn", figure: "serial", of: serialRate, factor: 1.8},
	{scenario: "churn", figure: "parallel", of: parallelRate, factor: 1.8},
	{scenario: "hot", figure: "allocations", of: allocs},
	{scenario: "deny", figure: "allocations", of: allocs},
	{scenario: "uniform", figure: "allocations", of: allocs},
	{scenario: "zipf", figure: "allocations", of: allocs},
	{scenario: "hot", figure: "serial", of: serialRate, subject: subject.MeteTake, times: 3, than: subject.Mete},
	{scenario: "hot", figure: "parallel", of: parallelRate, subject: subject.MeteTake, times: 3, than: subject.Mete},
	{scenario: "deny", figure: "serial", of: serialRate, subject: subject.MeteTake, times: 3, than: subject.Mete},
	{scenario: "zipf", figure: "serial", of: serialRate, subject: subject.MeteTake, times: 3, than: subject.Mete},
	{scenario: "zipf", figure: "parallel", of: parallelRate, subject: subject.MeteTake, times: 3, than: subject.Mete},
	{scenario: "hot", figure: "serial", of: serialRate, subject: subject.MeteThree, times: 2.2, than: subject.MeteTake},
	{scenario: "hot", figure: "allocations", of: allocs, subject: subject.MeteTake, most: 1},
	{scenario: "zipf", figure: "allocations", of: allocs, subject: subject.MeteTake, most: 1},
	{scenario: "memory", figure: "bytes a key", of: bytes, most: 45},
	{scenario: "memory", figure: "objects a key", of: objects, most: 0.01},
}

var compared = []string{subject.Sethvargo, subject.Throttled, subject.Httprate, subject.XTimeMap}

type verdict struct {
	Scenario string  `json:"scenario"`
	Figure   string  `json:"figure"`
	Mete     float64 `json:"mete"`
	Rival    string  `json:"best_rival"`
	Best     float64 `json:"best"`
	Ratio    float64 `json:"ratio,omitempty"` // best / mete
	Subject  string  `json:"subject"`
	Factor   float64 `json:"factor,omitempty"` // the minimum ratio
	Times    float64 `json:"times,omitempty"`  // the maximum of Mete / Best
	Most     float64 `json:"most"`             // the maximum of Mete
	Met      bool    `json:"met"`
}

func judge(results []result) []verdict {
	var verdicts []verdict
	for _, t := range targets {
		name := cmp.Or(t.subject, subject.Mete)
		mete, rival := find(results, t.scenario, name), bestRival(results, t)
		if t.than != "" {
			rival = find(results, t.scenario, t.than)
		}
		if mete == nil || rival == nil {
			continue
		}
		v := verdict{Scenario: t.scenario, Figure: t.figure, Subject: name, Factor: t.factor, Times: t.times, Most: t.most,
			Mete: t.of(*mete).Median, Rival: rival.Subject, Best: t.of(*rival).Median}
		if v.Mete > 0 {
			v.Ratio = v.Best / v.Mete
		}
		switch {
		case t.factor > 0:
			v.Met = v.Ratio >= t.factor
		case t.times > 0:
			v.Ratio = v.Mete / v.Best
			v.Met = v.Ratio <= t.times
		default:
			v.Met = v.Mete <= t.most
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

func bestRival(results []result, t target) *result {
	var best *result
	for _, name := range compared {
		if r := find(results, t.scenario, name); r != nil && (best == nil || t.of(*r).Median < t.of(*best).Median) {
			best = r
		}
	}
	return best
}
