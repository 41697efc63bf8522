// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/metehq/mete/policy"
)

// A Mistake is one thing that is wrong with a row, or with all rows together.
type Mistake struct {
	RuleID int64  // the row in rate_limit_rule; 0 for a new row, and for no row of it
	Name   string // the name of the rule; may be empty
	Policy string // the row in rate_limit_policy, where the mistake is in no rule

	Path   string // the column and the place in it: spec/algorithm_config/burst; empty is the whole row
	Value  string // the offending value, cut to a readable length; empty if it is the absence of one
	Reason string // what is wrong
	Hint   string // what to write instead; may be empty
}

// Error formats m on one line: `rule 17 "user-free": spec/algorithm_config/shards: …`.
func (m Mistake) Error() string {
	e := policy.Error{Path: m.Path, Value: m.Value, Reason: m.Reason, Hint: m.Hint}
	text := strings.TrimPrefix(e.Error(), "policy: ")
	switch {
	case m.RuleID != 0:
		return fmt.Sprintf("rule %d %q: %s", m.RuleID, m.Name, text)
	case m.Name != "":
		return fmt.Sprintf("rule %q: %s", m.Name, text)
	case m.Policy != "":
		return fmt.Sprintf("policy %q: %s", m.Policy, text)
	}
	return text
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

// maxShownBytes is how much of an offending value is shown.
const maxShownBytes = 60

// shown quotes a value, cut to a readable length.
func shown(s string) string {
	if len(s) > maxShownBytes {
		return strconv.Quote(strings.ToValidUTF8(s[:maxShownBytes], "")) + "…"
	}
	return strconv.Quote(s)
}
