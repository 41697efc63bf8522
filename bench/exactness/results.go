// SPDX-License-Identifier: Apache-2.0

package exactness

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Results are the cells of a run, by the contender's title and the condition's name.
type Results struct {
	Seed  uint64
	Day   string
	Took  string
	Using string // the versions of the servers
	Cells map[string]map[string]Cell
}

// Add adds a cell.
func (r *Results) Add(c Contender, condition Condition, cell Cell) {
	if r.Cells[c.Title()] == nil {
		r.Cells[c.Title()] = map[string]Cell{}
	}
	r.Cells[c.Title()][condition.Name] = cell
}

// IsComplete reports whether every contender has a cell for every condition.
func (r *Results) IsComplete() bool {
	for _, c := range Contenders {
		for _, condition := range Conditions {
			if _, ok := r.Cells[c.Title()][condition.Name]; !ok {
				return false
			}
		}
	}
	return true
}

// Version returns the version that a contender's processes told.
func (r *Results) Version(c Contender) string {
	for _, condition := range Conditions {
		if v := r.Cells[c.Title()][condition.Name].Version; v != "" && v != "(devel)" {
			return v
		}
	}
	return "this commit"
}

// Read reads the results of the last run from a file.
func Read(path string) (r Results, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("exactness: %w: run make compare-exactness", err)
	}
	return r, json.Unmarshal(text, &r)
}

// Write writes the results to a file.
func (r *Results) Write(path string, start time.Time) error {
	r.Day, r.Took = start.Format("2 January 2006"), time.Since(start).Round(time.Second).String()
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
