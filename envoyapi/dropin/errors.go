// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"fmt"
	"strings"
)

// A ConfigError is the first error in a configuration.
type ConfigError struct {
	File         string // the name of the file or of the control plane's message
	Line, Column int    // from 1; 0 for a message
	Path         string // of the descriptor, such as "descriptors[0].descriptors[2]"; may be empty
	Reason, Hint string // the hint may be empty
}

func (e *ConfigError) Error() string { return "dropin: " + e.text() }

func (e *ConfigError) text() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	if e.Path != "" {
		b.WriteString(": " + e.Path)
	}
	b.WriteString(": " + e.Reason)
	if e.Hint != "" {
		b.WriteString(": " + e.Hint)
	}
	return b.String()
}

// A place is a position in a configuration.
type place struct {
	file         string
	line, column int
	path         string
}

func (p place) fail(hint, format string, args ...any) *ConfigError {
	return &ConfigError{File: p.file, Line: p.line, Column: p.column, Path: p.path, Reason: fmt.Sprintf(format, args...), Hint: hint}
}
