// SPDX-License-Identifier: Apache-2.0

package policyyaml

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/metehq/mete/internal/excerpt"
	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/policy"
)

// A Mistake is a [policy.Error] with its place in a file.
type Mistake struct {
	File string // as the caller named it

	// Line and Column count from 1, columns in characters. They are 0 for a
	// mistake without a place. What is missing is shown at the object it is
	// missing from.
	Line, Column int

	policy.Error
}

// String formats m as compilers do, on one line:
// "policy.yaml:7:11: /rules/0/algorithm_config/burst: must be above 0 (got -5)".
func (m Mistake) String() string {
	var b strings.Builder
	b.WriteString(m.File)
	if m.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", m.Line, m.Column)
	}
	b.WriteString(": ")
	b.WriteString(strings.TrimPrefix(m.Error.Error(), "policy: "))
	return visible.Text(b.String())
}

// Errors are all mistakes in a policy file, in the order of the file.
type Errors []Mistake

// Error lists the mistakes, one a line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.String()
	}
	return strings.Join(lines, "\n")
}

// Annotate is Error with an excerpt of the file after each line. The file has these
// contents:
//
//	policy.yaml:7:11: /rules/0/algorithm_config/burst: must be above 0 (got -5)
//	    6 |     rps: 10
//	  > 7 |     burst: -5
//	      |            ^
//
// Each line has a line end.
func (es Errors) Annotate(data []byte) string {
	text := string(bytes.TrimPrefix(data, []byte("\ufeff")))
	var b strings.Builder
	for _, e := range es {
		b.WriteString(e.String() + "\n")
		for line := range strings.Lines(excerpt.Of(text, e.Line, e.Column)) {
			b.WriteString("  " + line)
		}
	}
	return b.String()
}
