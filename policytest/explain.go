// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

const (
	// maxRules bounds the explanations of rules that do not apply, if no rule applies.
	maxRules = 8

	// maxShown bounds the part of a value in messages.
	maxShown = 60
)

// explain explains f, one fact per line, at the given time.
func (f *Failure) explain(m *policy.Matcher, at bucket.Instant) []string {
	attrs := f.step.Attributes(f.Request - 1)
	why := []string{"the request: " + describeRequest(attrs, f.step)}
	e := m.Explain(attrs, f.step.Cost, at)
	switch {
	case e.Block != nil:
		why = append(why, fmt.Sprintf("override %s blocks it: %s", e.Block.ID, e.Block.Reason))
	case e.Allow != nil:
		why = append(why, fmt.Sprintf("override %s lets it pass: %s", e.Allow.ID, e.Allow.Reason))
	}
	if e.Shadow != nil {
		why = append(why, fmt.Sprintf("override %s puts all rules in shadow: %s", e.Shadow.ID, e.Shadow.Reason))
	}
	return f.appendRules(why, e.Rules)
}

// appendRules appends the outcomes of rules to why. Rules that apply, or that the expectation contains, are explained
// in full. The others are explained only if no rule applies.
func (f *Failure) appendRules(why []string, rules []policy.Consideration) []string {
	var others []*policy.Consideration
	applies := false
	for i := range rules {
		c := &rules[i]
		idle := c.Outcome == policy.OutcomeUnmatched || c.Outcome == policy.OutcomeLacking || c.Outcome == policy.OutcomeTaken || c.Outcome == policy.OutcomeUnneeded
		switch named := mentions(&f.step.Expect, c.Rule); {
		case c.Outcome == policy.OutcomeDisabled || c.Shadow && !named && f.step.Expect.WouldDeny == nil:
		case idle && !named:
			others = append(others, c)
		default:
			applies = applies || !idle && !c.Shadow
			why = append(why, f.describeRule(c)...)
		}
	}
	if !applies {
		for len(others) > 0 && (len(why) <= maxRules || len(others) == 1) {
			why = append(why, f.describeRule(others[0])...)
			others = others[1:]
		}
	}
	if len(others) > 0 {
		var idle []string
		for _, c := range others {
			idle = append(idle, c.Rule.Name)
		}
		why = append(why, "not applied: "+joinNames(idle))
	}
	return why
}

func mentions(e *Expectation, rule *policy.Rule) bool {
	is := func(name string) bool {
		return name == rule.Name || slices.ContainsFunc(rule.Limits, func(l policy.Limit) bool { return l.Name == name })
	}
	ofCount := func(c Count) bool { return is(c.Name) }
	ofAmount := func(a Amount) bool { return is(a.Limit) }
	return is(e.Rule) || slices.ContainsFunc(e.Applies, is) || slices.ContainsFunc(e.Denied, ofCount) ||
		slices.ContainsFunc(e.WouldDeny, ofCount) || slices.ContainsFunc(e.Remaining, ofAmount) || slices.ContainsFunc(e.Cost, ofAmount)
}

func (f *Failure) describeRule(c *policy.Consideration) []string {
	name := "rule " + c.Rule.Name
	has := fmt.Sprintf("%v is missing", c.Attribute)
	if c.Present {
		has = fmt.Sprintf("%v is %q", c.Attribute, shorten(c.Value))
	}
	switch c.Outcome {
	case policy.OutcomeApplies:
		return f.describeLimits(name, c)
	case policy.OutcomeUnmatched:
		name += fmt.Sprintf(" does not apply: %s, but must be %s", has, c.Wants)
		if c.Alternatives > 1 {
			name += fmt.Sprintf(" in the closest of its %d alternatives", c.Alternatives)
		}
	case policy.OutcomeInactive:
		name += " does not apply: it is active only " + c.Wants
	case policy.OutcomeLacking:
		name += " does not apply: " + has
	case policy.OutcomeDenying:
		name += " denies: " + has
	case policy.OutcomeTaken:
		name += fmt.Sprintf(" does not apply: rule %s, which is before it in its group, does", c.By.Name)
	case policy.OutcomeUnneeded:
		name += fmt.Sprintf(" does not apply: rule %s does", c.By.Name)
	case policy.OutcomeExempt:
		name = fmt.Sprintf("override %s exempts the request from %s", c.Override.ID, name)
	case policy.OutcomeBlocked:
		name = fmt.Sprintf("override %s blocks the key of the request under %s", c.Override.ID, name)
	}
	return []string{name}
}

func (f *Failure) describeLimits(name string, c *policy.Consideration) []string {
	if name += " applies"; c.Shadow {
		name += ", in shadow"
	}
	if c.Override != nil {
		name += ", with the limit of override " + c.Override.ID
	}
	if len(c.Matches) == 1 {
		return []string{name + ": " + f.describeBucket(&c.Matches[0])}
	}
	lines := []string{name}
	for i := range c.Matches {
		lines = append(lines, fmt.Sprintf("  %s: %s", c.Matches[i].Limit.Name, f.describeBucket(&c.Matches[i])))
	}
	return lines
}

func (f *Failure) describeBucket(m *policy.Match) string {
	statuses := f.decision.Limits()
	if m.Shadow {
		statuses = f.decision.Shadow
	}
	i := slices.IndexFunc(statuses, func(s mete.Status) bool { return s.Limit == m.Limit })
	if i < 0 {
		return "not checked, because the request is denied"
	}
	s := &statuses[i]
	most := m.Limit.Bucket.Capacity()
	if m.Limit.Bucket.Queued() {
		most += m.Limit.Bucket.MaxReserved()
	}
	text := fmt.Sprintf("%v of %v left, cost %v", s.Room(), most, s.Cost)
	if !s.Allowed {
		text += ", denies, retry after " + formatDuration(s.RetryAfter)
	}
	return text
}

func describeRequest(attrs policy.Map, s *Step) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(attrs)) {
		parts = append(parts, fmt.Sprintf("%s=%q", name, shorten(attrs[name])))
	}
	if s.Cost > 0 {
		parts = append(parts, fmt.Sprintf("cost %v", s.Cost))
	}
	if s.MaxWait > 0 {
		parts = append(parts, "may wait "+formatDuration(s.MaxWait))
	}
	if len(parts) == 0 {
		return "without attributes"
	}
	return strings.Join(parts, ", ")
}

func shorten(s string) string {
	if len(s) > maxShown {
		return strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}
