// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"fmt"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// A Coverage counts the requests that tests made under one rule.
type Coverage struct {
	Rule    *policy.Rule
	Applied int // requests that the rule applied to
	Denied  int // requests that its limits denied, or would have denied in shadow
}

func newCoverage(m *policy.Matcher) []Coverage {
	var all []Coverage
	for _, rule := range m.Rules() {
		if rule.Mode != policy.ModeOff {
			all = append(all, Coverage{Rule: rule})
		}
	}
	return all
}

func (r *runner) cover(d *mete.Decision) {
	r.coverStatuses(d.Limits())
	r.coverStatuses(d.Shadow)
	if d.RefusingRule() == nil {
		return
	}
	for rule, c := range r.coverage {
		if rule.Name == d.Rule {
			c.Applied++
			c.Denied++
		}
	}
}

func (r *runner) coverStatuses(statuses []mete.Status) {
	for i := 0; i < len(statuses); {
		rule, denied := statuses[i].Rule, false
		for ; i < len(statuses) && statuses[i].Rule == rule; i++ {
			denied = denied || !statuses[i].Allowed
		}
		c := r.coverage[rule]
		if c == nil {
			continue
		}
		if c.Applied++; denied {
			c.Denied++
		}
	}
}

const maxNames = 10

// Gaps describes the rules that the tests do not cover, one line each: rules that applied to no request, and rules
// that never denied one. It returns nil if there are no tests or no gaps.
func (r *Report) Gaps() []string {
	if len(r.Results) == 0 {
		return nil
	}
	var idle, lenient []string
	for _, c := range r.Rules {
		switch {
		case c.Applied == 0:
			idle = append(idle, c.Rule.Name)
		case c.Denied == 0:
			lenient = append(lenient, c.Rule.Name)
		}
	}
	var lines []string
	for _, gap := range []struct {
		names  []string
		is, do string
	}{{idle, "applies", "apply"}, {lenient, "denies", "deny"}} {
		if len(gap.names) == 0 {
			continue
		}
		verb, to := gap.do, "to no request of any test"
		if len(gap.names) == 1 {
			verb = gap.is
		}
		if gap.do == "deny" {
			to = "no request in any test"
		}
		lines = append(lines, fmt.Sprintf("%d of %d rules %s %s: %s", len(gap.names), len(r.Rules), verb, to, joinNames(gap.names)))
	}
	return lines
}

func joinNames(names []string) string {
	if more := len(names) - maxNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), more)
	}
	return strings.Join(names, ", ")
}
