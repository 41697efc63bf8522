// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
)

// An Error is one mistake in the settings.
type Error struct {
	File   string // the configuration file; empty where a flag or no file is to blame
	Line   int    // in File, from 1; 0 where the file does not say the setting
	Key    string // "timeouts.drain"
	Reason string // what is wrong, and what to write instead
}

// Error formats e as "mete.yaml:12: timeouts.drain: reason".
func (e Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
		}
		b.WriteString(": ")
	}
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	return b.String() + e.Reason
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
