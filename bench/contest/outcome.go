// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
)

// An Outcome is the printed result of a contest.
type Outcome struct {
	Conditions string    `json:"conditions"` // machine, server, rounds and times
	Results    []Result  `json:"results"`
	Verdicts   []Verdict `json:"targets"`

	scenarios []Scenario
	bases     []string
}

// errIncomplete is the error after tables that lack rows.
var errIncomplete = errors.New("limiters failed: their rows are left out")

// NewOutcome compares results with each other and with targets. Bases are the rivals of the ratios.
func NewOutcome(conditions string, events []Event, results []Result, bases []string, targets []Target) Outcome {
	relate(results, bases)
	o := Outcome{Conditions: conditions, Results: results, Verdicts: Judge(targets, results), bases: bases}
	for _, e := range events {
		o.scenarios = append(o.scenarios, e.Scenario)
	}
	return o
}

// Conditions describes the machine, the server, the rounds and their time.
func (c Config) Conditions(server string) string {
	return fmt.Sprintf("%s, %s/%s, %d CPUs shared with %s over loopback TCP; median of %d × %v",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), server, c.Rounds, c.Time)
}

// Write writes tables or JSON. It returns an error if a limiter failed, which the tables show.
func (o Outcome) Write(w io.Writer, asJSON bool) error {
	if asJSON {
		if err := json.NewEncoder(w).Encode(o); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(w, o.Conditions)
		for _, sc := range o.scenarios {
			o.writeScenario(w, sc)
		}
		writeVerdicts(w, o.Verdicts)
	}
	for _, r := range o.Results {
		if r.Failed != "" {
			return errIncomplete
		}
	}
	return nil
}
