// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
)

// An Error is one mistake in the settings.
type Error struct {
	File     string // the configuration file; empty where the value is not from a file
	Variable string // the environment variable with the value: "METE_TIMEOUTS_DRAIN"
	Line     int    // in File or Variable, from 1; 0 where neither has the setting
	Key      string // "timeouts.drain"
	Reason   string // the error, and the remedy
}

// Error formats e as "mete.yaml:12: timeouts.drain: reason", or as
// "environment: METE_TIMEOUTS_DRAIN: reason".
func (e Error) Error() string {
	var b strings.Builder
	place, key := e.File, e.Key
	if e.Variable != "" {
		place = "environment: " + e.Variable
		if variableOf(key) == e.Variable { // its name is the key
			key = ""
		}
	}
	if place != "" {
		b.WriteString(place)
		if e.Line > 1 || e.Line == 1 && e.File != "" { // most variables are one line
			fmt.Fprintf(&b, ":%d", e.Line)
		}
		b.WriteString(": ")
	}
	if key != "" {
		b.WriteString(key + ": ")
	}
	return b.String() + e.Reason
}

// fileLine is the line by which errors are sorted: 0 where the file has none.
func (e Error) fileLine() int {
	if e.File == "" {
		return 0
	}
	return e.Line
}

// Errors are all mistakes in the settings.
type Errors []Error

// Error lists the mistakes, one a line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}
