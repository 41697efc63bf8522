// SPDX-License-Identifier: Apache-2.0

package contest

import "github.com/metehq/mete/bench/report"

// A Target is a promise about one figure of some entrants beside the same of a
// rival, from one cell.
type Target struct {
	Scenario string
	Callers  int
	Figure   Figure
	Subjects []string // each for itself
	Rival    string

	// Either at least Factor times the rival's figure, or at most Most times.
	Factor, Most float64
}

// A Figure is what a target speaks of.
type Figure string

// The figures.
const (
	Takes Figure = "takes/s"
	P99   Figure = "p99"
)

func (f Figure) of(r *Result) float64 {
	var stat *report.Stat
	switch f {
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
	Most     float64 `json:"most,omitempty"`   // the largest
	Met      bool    `json:"met"`
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
			ratio := t.Figure.of(own) / t.Figure.of(rival)
			verdicts = append(verdicts, Verdict{
				Subject: name, Scenario: t.Scenario, Callers: t.Callers, Figure: t.Figure, Rival: t.Rival,
				Ratio: ratio, Factor: t.Factor, Most: t.Most,
				Met: t.Most > 0 && ratio <= t.Most || t.Most == 0 && ratio >= t.Factor,
			})
		}
	}
	return verdicts
}
