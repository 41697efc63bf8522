// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"fmt"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// A Coverage is how often tests got to one rule.
type Coverage struct {
	Rule    *policy.Rule
	Applied int // requests that fell under it
	Denied  int // of those, the ones that its limits denied; in shadow, would have denied
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

// cover counts a decision.
func (r *runner) cover(d *mete.Decision) {
	r.coverStatuses(d.Limits())
	r.coverStatuses(d.Shadow)
	if d.Reason != mete.ReasonMissingAttribute {
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

// maxNames bounds the rules that a gap lists.
const maxNames = 10

// Gaps says in words which rules the tests left out, one thing a line: those that
// applied to no request of any test, and those that did and never denied one. It is
// nil where there are no tests, and where there are no gaps.
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
		lines = append(lines, fmt.Sprintf("%d of %d rules %s %s: %s", len(gap.names), len(r.Rules), verb, to, list(gap.names)))
	}
	return lines
}

// list joins names, as far as they can be read.
func list(names []string) string {
	if more := len(names) - maxNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), more)
	}
	return strings.Join(names, ", ")
}
