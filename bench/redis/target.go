// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/metehq/mete/bench/report"
	"github.com/metehq/mete/bench/subject/inredis"
)

// A target is a promise about one figure of mete beside the same of a rival,
// from one cell.
type target struct {
	scenario string
	callers  int
	leased   bool
	figure   string
	rival    string

	// Either at least factor times the rival's figure, or at most most times.
	factor, most float64
}

const (
	takes = "takes/s"
	p99   = "p99"
)

var targets = []target{
	{scenario: "hot", callers: 64, figure: takes, rival: inredis.RedisRate, factor: 6},
	{scenario: "hot", callers: 256, figure: takes, rival: inredis.RedisRate, factor: 12},
	{scenario: "hot", callers: 64, leased: true, figure: takes, rival: inredis.RedisRate, factor: 50},
	{scenario: "keys", callers: 1, figure: takes, rival: inredis.RedisRate, factor: 0.95},
	{scenario: "keys", callers: 16, figure: takes, rival: inredis.RedisRate, factor: 1.7},
	{scenario: "keys", callers: 64, figure: takes, rival: inredis.RedisRate, factor: 3},
	{scenario: "keys", callers: 64, figure: p99, rival: inredis.RedisRate, most: 0.4},
	{scenario: "keys", callers: 64, figure: takes, rival: inredis.Window, factor: 1.3},
	{scenario: "keys", callers: 256, figure: takes, rival: inredis.RedisRate, factor: 5},
	{scenario: "three", callers: 64, figure: takes, rival: inredis.RedisRate, factor: 3.2},
}

// subjects are those that a target speaks of: the store, and what a program
// calls.
func (t target) subjects() []string {
	if t.leased {
		return []string{inredis.MeteStoreLeased, inredis.MeteLimiterLeased}
	}
	return []string{inredis.MeteStore, inredis.MeteLimiter}
}

func (t target) of(r *result) *report.Stat {
	if t.figure == p99 {
		return r.P99
	}
	return r.Takes
}

// A verdict is a target and what became of it.
type verdict struct {
	Subject  string  `json:"subject"`
	Scenario string  `json:"scenario"`
	Callers  int     `json:"callers"`
	Figure   string  `json:"figure"`
	Rival    string  `json:"rival"`
	Ratio    float64 `json:"ratio"`            // mete / rival
	Factor   float64 `json:"factor,omitempty"` // the least ratio asked for, or
	Most     float64 `json:"most,omitempty"`   // the largest
	Met      bool    `json:"met"`
}

// judge returns the verdicts on the targets whose figures were measured.
func judge(results []result) []verdict {
	var verdicts []verdict
	for _, t := range targets {
		rival := find(results, t.scenario, t.callers, t.rival)
		for _, name := range t.subjects() {
			mete := find(results, t.scenario, t.callers, name)
			if mete == nil || rival == nil {
				continue
			}
			ratio := t.of(mete).Median / t.of(rival).Median
			verdicts = append(verdicts, verdict{
				Subject: name, Scenario: t.scenario, Callers: t.callers, Figure: t.figure, Rival: t.rival,
				Ratio: ratio, Factor: t.factor, Most: t.most,
				Met: t.most > 0 && ratio <= t.most || t.most == 0 && ratio >= t.factor,
			})
		}
	}
	return verdicts
}
