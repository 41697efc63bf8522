// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"fmt"
	"strings"
)

// A Mistake is one thing about an [Input] that cannot be played.
type Mistake struct {
	Field  string `json:"field"` // JSON Pointer (RFC 6901) into the input: "/lanes/0/capacity"
	Reason string `json:"reason"`
	Hint   string `json:"hint,omitempty"` // what to do instead
}

// String formats m on one line.
func (m Mistake) String() string {
	s := m.Field + ": " + m.Reason
	if m.Hint != "" {
		s += "; " + m.Hint
	}
	return s
}

// Mistakes are all that were found. They are an error.
type Mistakes []Mistake

// Error lists the mistakes, one a line.
func (ms Mistakes) Error() string {
	lines := make([]string, len(ms))
	for i, m := range ms {
		lines[i] = m.String()
	}
	return "playground: " + strings.Join(lines, "\n")
}

// add notes a mistake.
func (ms *Mistakes) add(field, hint, format string, args ...any) {
	*ms = append(*ms, Mistake{Field: field, Reason: fmt.Sprintf(format, args...), Hint: hint})
}

// err is nil where nothing was found.
func (ms Mistakes) err() error {
	if len(ms) == 0 {
		return nil
	}
	return ms
}
