// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/metehq/mete/policy"
)

// An Error is an error in a row, or in the rules as a whole.
type Error struct {
	RuleID int64  // row in rate_limit_rule; 0 if none
	Name   string // may be empty
	Policy string // row in rate_limit_policy; empty if none

	Path   string // column and place, such as spec/algorithm_config/burst; empty is the whole row
	Value  string // invalid value, shortened; may be empty
	Reason string // error
	Hint   string // remedy; may be empty
}

// Error formats m on one line: `rule 17 "user-free": spec/algorithm_config/shards: …`.
func (m Error) Error() string {
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

// Errors lists all errors in a set of rules, in the order of the rules.
type Errors []Error

// Error returns the errors, one per line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

const maxShownBytes = 60

func quote(s string) string {
	if len(s) > maxShownBytes {
		return strconv.Quote(strings.ToValidUTF8(s[:maxShownBytes], "")) + "…"
	}
	return strconv.Quote(s)
}
