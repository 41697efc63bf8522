// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strconv"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
)

// An Explanation reports how a policy arrives at the result of [Matcher.Match].
type Explanation struct {
	Verdict
	Matches []Match // as Match returns them

	// Shadow is the override that keeps all rules from denying, or nil.
	Shadow *Override

	// Rules are all rules, in the order of the policy. Rules is empty if an override decided before any rule was
	// considered.
	Rules []Consideration
}

// A Consideration is the outcome of one rule for one request.
type Consideration struct {
	Rule    *Rule
	Outcome Outcome

	// Shadow reports whether a rule that applies or takes precedence denies nothing: by its mode, for this key, or
	// by an override.
	Shadow bool

	// Attribute is the first attribute that is missing or does not match, if that is why the rule did not apply or
	// denied the request. Value and Present are its value in the request. Wants describes the values that the rule
	// matches, or the time in which it is active.
	Attribute Attribute
	Value     string
	Present   bool
	Wants     string

	// Alternatives is the number of alternatives of a match that does not hold, if there are several. Attribute is of
	// the alternative that comes closest.
	Alternatives int

	// By is the rule that applied instead of this one (Taken, Unneeded).
	By *Rule

	// Override is the exception from the rule (Exempt, Blocked), or the override that replaced its limit, or nil.
	Override *Override

	// Matches are the limits of this rule that apply to the request.
	Matches []Match
}

// Explain decides like [Matcher.Match] and reports the reasons. It visits every rule instead of using the index.
func (m *Matcher) Explain(attrs Attributes, cost bucket.Tokens, now bucket.Instant) Explanation {
	f := founds.Get().(*MatchResult)
	defer founds.Put(f)
	s := &f.scratch
	m.begin(s, attrs, cost, now)
	defer s.end()
	var e Explanation
	rules := m.exceptions == nil || m.exceptions.apply(m, s, &e.Verdict)
	if s.shadow {
		e.Shadow = m.exceptions.findShadow(m, s)
	}
	if !rules {
		return e
	}
	groups, scopes := map[int]*Rule{}, map[int]*Rule{} // the rules that took them
	for i, r := range m.rules {
		c := Consideration{Rule: r}
		before, tier, scope := len(e.Matches), s.tiers[r.group], s.scopes[r.scope]
		e.Matches, c.Outcome = m.consider(e.Matches, s, i, &e.Verdict)
		c.Matches = slices.Clip(e.Matches[before:])
		m.noteReason(s, &c)
		switch c.Outcome {
		case OutcomeTaken:
			c.By = groups[r.group]
		case OutcomeUnneeded:
			c.By = scopes[r.scope]
		case OutcomeExempt, OutcomeBlocked:
			c.Override = m.exceptions.find(m, s, i, m.appendComponents(nil, s, r)).Override
			fallthrough
		case OutcomeApplies, OutcomeDenying:
			// An override blocks a key regardless of the mode of the rule.
			c.Shadow = s.shadow || s.tiers[r.group] == takenShadow && c.Outcome != OutcomeBlocked
		}
		if s.tiers[r.group] != tier {
			groups[r.group] = r
		}
		if s.scopes[r.scope] != scope {
			scopes[r.scope] = r
		}
		if len(c.Matches) > 0 {
			c.Override = c.Matches[0].Limit.Override
		}
		if e.Rules = append(e.Rules, c); e.Block != nil {
			break
		}
	}
	for _, r := range m.rules {
		s.tiers[r.group], s.scopes[r.scope] = untaken, untaken
	}
	return e
}

func (x *exceptions) findShadow(m *Matcher, s *scratch) *Override {
	for i := range x.whole.list {
		if e := &x.whole.list[i]; e.Action == ActionShadow && e.isActive(s) && m.holdAny(s, e.alternatives) {
			return e.Override
		}
	}
	return nil
}

func (m *Matcher) noteReason(s *scratch, c *Consideration) {
	note := func(slot int) {
		f := m.fact(s, slot)
		c.Attribute, c.Value, c.Present = m.attributes[slot], f.value, f.present
	}
	switch c.Outcome {
	case OutcomeUnmatched:
		// The alternative that comes closest has the most clauses that hold before the first that does not.
		closest, at := 0, -1
		for k, clauses := range c.Rule.alternatives {
			s.enterAlternative(k)
			if i := slices.IndexFunc(clauses, func(cl clause) bool { return !cl.holds(m.fact(s, cl.slot)) }); i > at {
				closest, at = k, i
			}
		}
		if len(c.Rule.alternatives) > 1 {
			c.Alternatives = len(c.Rule.alternatives)
		}
		s.enterAlternative(closest)
		cl := &c.Rule.alternatives[closest][at]
		if m.has[cl.slot] != nil {
			note(m.from[cl.slot] - 1)
		} else {
			note(cl.slot)
		}
		_, c.Wants = m.describeClause(cl)
	case OutcomeInactive:
		c.Wants = c.Rule.active.text
	case OutcomeLacking, OutcomeDenying:
		for i := range c.Rule.keys {
			if slot := c.Rule.keys[i].slot; !m.fact(s, slot).present {
				note(slot)
				return
			}
		}
	}
}

// maxWords bounds the values in the description of a pattern.
const maxWords = 5

// String describes the values that p matches.
func (p *pattern) String() string {
	var words []string
	for _, v := range p.exact {
		words = append(words, strconv.Quote(v))
	}
	for _, v := range p.prefixes {
		if v == "" {
			words = append(words, "any value")
		} else {
			words = append(words, strconv.Quote(v+"*"))
		}
	}
	for _, v := range p.suffixes {
		words = append(words, strconv.Quote("*"+v))
	}
	for _, t := range p.templates {
		words = append(words, strconv.Quote(t.String()))
	}
	for _, n := range p.networks {
		words = append(words, n.String())
	}
	if more := len(words) - maxWords; more > 1 {
		words = append(words[:maxWords], "one of "+strconv.Itoa(more)+" more")
	}
	if p.negate {
		return "not " + parse.Enumerate(words, "or")
	}
	return parse.Enumerate(words, "or")
}
