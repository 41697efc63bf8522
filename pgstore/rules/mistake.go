// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// A Mistake is what is wrong with one row, or with all of them together.
type Mistake struct {
	RuleID int64  // of the row in rate_limit_rule; 0 where it is no row of that, or not there yet
	Name   string // of the rule, or of the row in rate_limit_attribute; may be empty

	// Column is where it is: one of rate_limit_rule, or rate_limit_attribute as a
	// whole. Empty is the row, or the set of rows.
	Column string

	Path   string // JSON Pointer (RFC 6901) inside of the column spec; else empty
	Value  string // the offending value, cut to a readable length; empty if it is the absence of one
	Reason string // what is wrong with it
	Hint   string // what to write instead; may be empty
}

// Error formats m on one line: `rule 17 "user-free": spec/algorithm_config/shards: …`.
func (m Mistake) Error() string {
	var b strings.Builder
	switch {
	case m.Column == attributeTable:
		b.WriteString(attributeTable + " " + strconv.Quote(m.Name) + ": ")
	case m.RuleID != 0:
		fmt.Fprintf(&b, "rule %d %q: ", m.RuleID, m.Name)
	case m.Name != "":
		fmt.Fprintf(&b, "rule %q: ", m.Name)
	}
	if m.Column != "" && m.Column != attributeTable {
		b.WriteString(m.Column + m.Path + ": ")
	}
	b.WriteString(m.Reason)
	if m.Value != "" {
		b.WriteString(" (got " + m.Value + ")")
	}
	if m.Hint != "" {
		b.WriteString("; " + m.Hint)
	}
	return visible(b.String())
}

// Errors are all mistakes in a set of rules, in the order of the rules.
type Errors []Mistake

// Error lists the mistakes, one a line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// visible escapes what a terminal would act on: rows are foreign.
func visible(s string) string {
	if strings.IndexFunc(s, unicode.IsControl) < 0 {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if unicode.IsControl(c) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}

// maxShownBytes is how much of an offending value is shown.
const maxShownBytes = 60

// shown quotes a value, cut to a readable length.
func shown(s string) string {
	if len(s) > maxShownBytes {
		return strconv.Quote(strings.ToValidUTF8(s[:maxShownBytes], "")) + "…"
	}
	return strconv.Quote(s)
}
