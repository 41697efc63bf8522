// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/internal/visible"
)

// An Error is one error in a policy file.
type Error struct {
	Path   string // JSON Pointer (RFC 6901): "/rules/3/algorithm_config/burst"
	Value  string // the invalid value as JSON, shortened; empty if a field is missing
	Reason string // why the value is invalid
	Hint   string // the remedy; may be empty
}

// Error formats e on one line, including the hint.
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

func (c *compiler) errors() error {
	if c.Count() == 0 {
		return nil
	}
	var es Errors
	for _, m := range c.Errors() {
		es = append(es, Error(m))
	}
	return es
}

// Errors are all errors in a policy file, in the order of the file.
type Errors []Error

// Error lists the errors, one per line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}
