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

// A FileError is a [policy.Error] with its position in a file.
type FileError struct {
	File string // as the caller named it

	// Line and Column count from 1, columns in characters. They are 0 for an error without a position. A missing field
	// has the position of its object.
	Line, Column int

	policy.Error

	inPrices bool // File is not the policy, but the file with its prices
}

// String formats m on one line, like a compiler: "policy.yaml:7:11: /rules/0/algorithm_config/burst: must be above
// 0 (got -5)".
func (m FileError) String() string {
	var b strings.Builder
	b.WriteString(m.File)
	if m.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", m.Line, m.Column)
	}
	b.WriteString(": ")
	b.WriteString(strings.TrimPrefix(m.Error.Error(), "policy: "))
	return visible.Text(b.String())
}

// Errors are all errors in a policy file, in the order of the file.
type Errors []FileError

// Error lists the errors, one per line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.String()
	}
	return strings.Join(lines, "\n")
}

// Annotate returns Error with an excerpt of data, the contents of the file, after each line:
//
//	policy.yaml:7:11: /rules/0/algorithm_config/burst: must be above 0 (got -5)
//	    6 |     rps: 10
//	  > 7 |     burst: -5
//	      |            ^
//
// Each line ends with a line feed.
func (es Errors) Annotate(data []byte) string {
	text := string(bytes.TrimPrefix(data, []byte("\ufeff")))
	var b strings.Builder
	for _, e := range es {
		b.WriteString(e.String() + "\n")
		if e.inPrices {
			continue
		}
		for line := range strings.Lines(excerpt.Of(text, e.Line, e.Column)) {
			b.WriteString("  " + line)
		}
	}
	return b.String()
}
