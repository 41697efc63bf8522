// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/internal/visible"
)

// An Error is one mistake in a policy file.
type Error struct {
	Path   string // JSON Pointer (RFC 6901) to the place: "/rules/3/algorithm_config/burst"
	Value  string // the offending value as JSON, cut to a readable length; empty if it is the absence of one
	Reason string // what is wrong with it
	Hint   string // what to write instead; may be empty
}

// Error formats e on one line, hint included.
func (e Error) Error() string {
	s := "policy: "
	if e.Path != "" {
		s += e.Path + ": "
	}
	s += e.Reason
	if e.Value != "" {
		s += fmt.Sprintf(" (got %s)", e.Value)
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return visible.Text(s)
}

// errors returns the mistakes that c found in a file, nil for none.
func (c *compiler) errors() error {
	if c.Found() == 0 {
		return nil
	}
	var es Errors
	for _, m := range c.Errors() {
		es = append(es, Error(m))
	}
	return es
}

// Errors are all mistakes found in a policy file, in the order of the file.
type Errors []Error

// Error lists the mistakes, one a line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}
