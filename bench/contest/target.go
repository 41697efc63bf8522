// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"time"

	"github.com/metehq/mete/bench/report"
)

// A Target is a promise about one figure of some entrants, relative to the figure of a rival in the same cell.
type Target struct {
	Scenario string
	Callers  int
	Figure   Figure
	Subjects []string // each on its own
	Rival    string

	// Exactly one is set. The figure must be at least Factor times the rival's figure, or at most Most times,
	// or, for times, at most Added more.
	Factor, Most float64
	Added        time.Duration
}

type Figure string

const (
	Takes Figure = "takes/s"
	P50   Figure = "p50"
	P99   Figure = "p99"
)

func (f Figure) valueOf(r *Result) float64 {
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

// A Verdict is the outcome of a target.
type Verdict struct {
	Subject  string  `json:"subject"`
	Scenario string  `json:"scenario"`
	Callers  int     `json:"callers"`
	Figure   Figure  `json:"figure"`
	Rival    string  `json:"rival"`
	Ratio    float64 `json:"ratio"`            // the subject's figure / the rival's
	Factor   float64 `json:"factor,omitempty"` // the minimum ratio
	Most     float64 `json:"most,omitempty"`   // the maximum ratio
	Met      bool    `json:"met"`

	// The difference of the times, and its maximum.
	More  time.Duration `json:"more_ns,omitempty"`
	Added time.Duration `json:"added_ns,omitempty"`
}

// Judge returns the verdicts on the targets with measured figures.
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
				Ratio: t.Figure.valueOf(own) / t.Figure.valueOf(rival), Factor: t.Factor, Most: t.Most,
			}
			if t.Added > 0 {
				v.More, v.Added = time.Duration(t.Figure.valueOf(own)-t.Figure.valueOf(rival)), t.Added
			}
			v.Met = v.isMet()
			verdicts = append(verdicts, v)
		}
	}
	return verdicts
}

func (v Verdict) isMet() bool {
	switch {
	case v.Added > 0:
		return v.More <= v.Added
	case v.Most > 0:
		return v.Ratio <= v.Most
	}
	return v.Ratio >= v.Factor
}
