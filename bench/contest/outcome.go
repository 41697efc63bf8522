// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
)

// An Outcome is what is printed of a contest.
type Outcome struct {
	Conditions string    `json:"conditions"` // what the figures depend on
	Results    []Result  `json:"results"`
	Verdicts   []Verdict `json:"targets"`

	scenarios []Scenario
	bases     []string
}

// errIncomplete says that rows are missing below the tables that lack them.
var errIncomplete = errors.New("limiters failed: their rows are left out")

// NewOutcome compares results with each other and with targets. Bases are the
// rivals by whose takes a second all others are divided.
func NewOutcome(conditions string, events []Event, results []Result, bases []string, targets []Target) Outcome {
	relate(results, bases)
	o := Outcome{Conditions: conditions, Results: results, Verdicts: Judge(targets, results), bases: bases}
	for _, e := range events {
		o.scenarios = append(o.scenarios, e.Scenario)
	}
	return o
}

// Conditions says what every figure depends on: the machine, the server it is
// shared with, and how often and how long was measured.
func (c Config) Conditions(server string) string {
	return fmt.Sprintf("%s, %s/%s, %d CPUs shared with %s over loopback TCP; median of %d × %v",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), server, c.Rounds, c.Time)
}

// Write prints tables, or JSON. It returns an error where something could not be
// measured, as it says below the tables.
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
