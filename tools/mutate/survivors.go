// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A survivor is a mutant that is known to survive.
type survivor struct {
	file, function, change string
	nth                    int
	reason                 string
}

// survivors are the known survivors, by the names of their mutants.
type survivors map[string]survivor

// readSurvivors reads a table with five columns: file, function, change, number and reason. Tabs separate them.
func readSurvivors(path string) (survivors, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	known := survivors{}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 5 {
			return nil, fmt.Errorf("%s:%d: want file, function, change, number and reason", path, i+1)
		}
		s := survivor{file: fields[0], function: fields[1], change: fields[2], reason: fields[4]}
		if s.nth, err = strconv.Atoi(fields[3]); err != nil || s.nth < 1 {
			return nil, fmt.Errorf("%s:%d: number %q: want 1 or more", path, i+1, fields[3])
		}
		if !hasReason(s.reason) {
			return nil, fmt.Errorf("%s:%d: the reason must start with %q or %q", path, i+1, reasons[0], reasons[1])
		}
		name := s.name()
		if _, ok := known[name]; ok {
			return nil, fmt.Errorf("%s:%d: %s is listed twice", path, i+1, name)
		}
		known[name] = s
	}
	return known, nil
}

var reasons = []string{"equivalent: ", "not tested: "}

func hasReason(text string) bool {
	return slices.ContainsFunc(reasons, func(prefix string) bool {
		return strings.HasPrefix(text, prefix) && len(text) > len(prefix)
	})
}

func (s survivor) name() string {
	m := mutant{file: s.file, function: s.function, change: s.change, nth: s.nth}
	return m.name()
}

// row returns the mutant as a line of the table, without a reason.
func (m *mutant) row() string {
	return strings.Join([]string{m.file, m.function, m.change, strconv.Itoa(m.nth)}, "\t")
}

// findStale returns the names of listed survivors that no longer exist.
func (known survivors) findStale(jobs []job) []string {
	exists := map[string]bool{}
	for _, j := range jobs {
		exists[j.name()] = true
	}
	var stale []string
	for name := range known {
		if !exists[name] {
			stale = append(stale, name)
		}
	}
	slices.Sort(stale)
	return stale
}
