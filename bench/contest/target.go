// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"time"

	"github.com/metehq/mete/bench/report"
)

// A Target is a promise about one figure of some entrants beside the same of a
// rival, from one cell.
type Target struct {
	Scenario string
	Callers  int
	Figure   Figure
	Subjects []string // each for itself
	Rival    string

	// Either at least Factor times the rival's figure, or at most Most times, or, of
	// a time, at most Added more.
	Factor, Most float64
	Added        time.Duration
}

// A Figure is what a target speaks of.
type Figure string

// The figures.
const (
	Takes Figure = "takes/s"
	P50   Figure = "p50"
	P99   Figure = "p99"
)

func (f Figure) of(r *Result) float64 {
	var stat *report.Stat
	switch f {
	case P50:
		stat = r.P50
	case P99:
		stat = r.P99
	default:
		stat = r.Takes
	}
	return stat.Median
}

// A Verdict is a target and what became of it.
type Verdict struct {
	Subject  string  `json:"subject"`
	Scenario string  `json:"scenario"`
	Callers  int     `json:"callers"`
	Figure   Figure  `json:"figure"`
	Rival    string  `json:"rival"`
	Ratio    float64 `json:"ratio"`            // the subject's / the rival's
	Factor   float64 `json:"factor,omitempty"` // the least ratio asked for, or
	Most     float64 `json:"most,omitempty"`   // the largest, or
	Met      bool    `json:"met"`

	// How much more the subject's time is, and how much it may be.
	More  time.Duration `json:"more_ns,omitempty"`
	Added time.Duration `json:"added_ns,omitempty"`
}

// Judge returns the verdicts on the targets whose figures were measured.
func Judge(targets []Target, results []Result) []Verdict {
	var verdicts []Verdict
	for _, t := range targets {
		rival := find(results, t.Scenario, t.Callers, t.Rival)
		for _, name := range t.Subjects {
			own := find(results, t.Scenario, t.Callers, name)
			if own == nil || rival == nil {
				continue
			}
			v := Verdict{
				Subject: name, Scenario: t.Scenario, Callers: t.Callers, Figure: t.Figure, Rival: t.Rival,
				Ratio: t.Figure.of(own) / t.Figure.of(rival), Factor: t.Factor, Most: t.Most,
			}
			if t.Added > 0 {
				v.More, v.Added = time.Duration(t.Figure.of(own)-t.Figure.of(rival)), t.Added
			}
			v.Met = v.met()
			verdicts = append(verdicts, v)
		}
	}
	return verdicts
}

func (v Verdict) met() bool {
	switch {
	case v.Added > 0:
		return v.More <= v.Added
	case v.Most > 0:
		return v.Ratio <= v.Most
	}
	return v.Ratio >= v.Factor
}
