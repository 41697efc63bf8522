// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/policy/internal/space"
)

// A captured attribute, path:NAME, is the text of the path at the wildcard {NAME} of a rule's templates. Its value
// depends on the rule, so no request supplies it, and the matcher computes it again for every rule.

// IsCaptured reports whether a is path:NAME. A path template of the rule captures it; requests do not supply it.
func (a Attribute) IsCaptured() bool { return a.Source == SourcePath && a.Name != "" }

// parseCaptured parses an attribute path:NAME.
func parseCaptured(s, name string) (Attribute, *attributeError) {
	if !requestpath.IsWildcardName(name) {
		return Attribute{}, &attributeError{s, "path:NAME has the name of a wildcard", `as in path:id, which the template "/users/{id}" captures`}
	}
	return Attribute{Source: SourcePath, Name: name, text: "path:" + name}, nil
}

// captureFact returns the value of the captured attribute in slot for the current rule.
func (m *Matcher) captureFact(s *scratch, slot int) *fact {
	f := &s.facts[slot]
	f.looked = true
	s.captured = append(s.captured, slot)
	if s.rule == nil {
		return f
	}
	clauses := s.rule.alternatives[s.alternative]
	for i := range clauses {
		c := &clauses[i]
		if len(c.templates) == 0 || c.negate {
			continue
		}
		path := m.fact(s, c.slot)
		if t := c.findTemplate(path.value); path.present && t != nil {
			if f.value, f.present = t.Capture(path.value, m.attributes[slot].Name); f.present {
				return f
			}
		}
	}
	return f
}

// forgetCaptures removes the values that the previous rule captured.
func (s *scratch) forgetCaptures() {
	for _, slot := range s.captured {
		s.facts[slot] = fact{}
	}
	s.captured = s.captured[:0]
}

// captures reports whether every path that the alternatives accept has a value for the wildcard with the name.
func captures(alternatives [][]clause, name string) bool {
	return len(alternatives) > 0 && !slices.ContainsFunc(alternatives, func(clauses []clause) bool {
		return !slices.ContainsFunc(clauses, func(c clause) bool {
			return !c.negate && len(c.templates) > 0 && c.size() == len(c.templates) &&
				!slices.ContainsFunc(c.templates, func(t *requestpath.Template) bool { return !t.HasWildcard(name) })
		})
	})
}

// checkCapture reports a captured attribute that not every path of the clauses has.
func (c *compiler) checkCapture(at *parse.Node, a Attribute, alternatives [][]clause) bool {
	if !a.IsCaptured() || captures(alternatives, a.Name) {
		return true
	}
	reason, hint := fmt.Sprintf("the match has no path template with {%s}", a.Name), fmt.Sprintf(`as in {"path": "/users/{%s}"}`, a.Name)
	if len(alternatives) > 1 || len(alternatives) == 1 && slices.ContainsFunc(alternatives[0], func(cl clause) bool {
		return !cl.negate && slices.ContainsFunc(cl.templates, func(t *requestpath.Template) bool { return t.HasWildcard(a.Name) })
	}) {
		reason, hint = fmt.Sprintf("not every path of the match has {%s}", a.Name), "give the other paths a rule of their own, or a wildcard with that name"
	}
	c.AddAt(at, fmt.Sprintf("no path captures %v: %s", a, reason), hint)
	return false
}

// checkAlternatives reports alternatives with templates that have different texts for one path.
func (c *compiler) checkAlternatives(d *draft, n *parse.Node) bool {
	for i, alt := range d.alternatives {
		for j, other := range d.alternatives[:i] {
			t, u, name := findContradiction(alt, other)
			if name == "" || c.space.Apart(d.takes[i], d.takes[j]) {
				continue
			}
			c.AddAt(n.List[i], fmt.Sprintf("a path can match templates of this and of an earlier alternative, %q and %q, with different texts for {%s}", t, u, name),
				"use different names, or write a rule for each alternative")
			return false
		}
	}
	return true
}

// findContradiction returns templates of two alternatives that contradict each other, and the name of their wildcard.
func findContradiction(alt, other []clause) (t, u *requestpath.Template, name string) {
	for i := range alt {
		for j := range other {
			if alt[i].negate || other[j].negate {
				continue
			}
			for _, t := range alt[i].templates {
				for _, u := range other[j].templates {
					if name := t.Contradicts(u); name != "" {
						return t, u, name
					}
				}
			}
		}
	}
	return nil, nil, ""
}

// checkCaptureOfRules checks that the rules of an override capture an attribute of its match.
func (c *compiler) checkCaptureOfRules(d *draft, at *parse.Node, a Attribute) bool {
	if !a.IsCaptured() {
		return true
	}
	if len(d.of) == 0 {
		c.AddAt(at, fmt.Sprintf("the rules of an override capture %v, and it has none", a), "set rules, or match path")
		return false
	}
	for _, r := range d.of {
		if !captures(r.alternatives, a.Name) {
			c.AddAt(at, fmt.Sprintf("rule %q does not capture %v", r.Name, a), "match path, or another attribute")
			return false
		}
	}
	return true
}

// checkCostCaptures checks that the match of a rule captures the costs of its limits.
func (c *compiler) checkCostCaptures(at *parse.Node, limits []Limit, alternatives [][]clause) {
	for i := range limits {
		if k := &limits[i].cost; k.variable && !c.checkCapture(at, k.source, alternatives) {
			return
		}
	}
}

// readTemplate reads a path template of a match.
func (c *compiler) readTemplate(p *pattern, n *parse.Node) (space.Set, bool) {
	t, m := requestpath.ParseTemplate(n.Text)
	if t == nil {
		c.Add(n, m.Reason, m.Hint)
		return space.Set{}, false
	}
	for _, u := range p.templates {
		if name := u.Contradicts(t); name != "" {
			c.Add(n, fmt.Sprintf("a path can match this template and %q, with different texts for {%s}", u, name), "use different names, or write a rule for each template")
			return space.Set{}, false
		}
	}
	p.templates = append(p.templates, t)
	return space.WithTemplate(t), true
}

// templateSet returns the paths of a template that have a text of p at the wildcard name. It ignores a negation of p.
func templateSet(t *requestpath.Template, name string, p *pattern) space.Set {
	sets := []space.Set{{}}
	for _, v := range p.exact {
		sets = append(sets, space.WithCapture(t, name, v, true))
	}
	for _, v := range p.prefixes {
		sets = append(sets, space.WithCapture(t, name, v, false))
	}
	return space.Union(sets)
}

// narrowByCapture narrows a rule's paths by a clause on a captured attribute.
func (c *compiler) narrowByCapture(alt *alternative, at *parse.Node, cl *clause) bool {
	a := c.matcher.attributes[cl.slot]
	slot, set, ok := captureSet(alt.clauses, a, &cl.pattern)
	if ok && set.Empty() {
		c.AddAt(at, fmt.Sprintf("the rule can never match: no path has such a text for {%s}", a.Name), "a segment is not empty, and has no slash")
		return false
	}
	return ok && c.narrow(alt, at, slot, set)
}

// pathFirst returns the fields of a match with the captured attributes at the end, because they depend on the path.
func pathFirst(fields []parse.Member) []parse.Member {
	captured := func(f parse.Member) bool { return strings.HasPrefix(strings.ToLower(f.Name), "path:") }
	if !slices.ContainsFunc(fields, captured) {
		return fields
	}
	rest := slices.DeleteFunc(slices.Clone(fields), captured)
	return append(rest, slices.DeleteFunc(slices.Clone(fields), func(f parse.Member) bool { return !captured(f) })...)
}

// captureSet returns the slot of the path, and the paths of the clauses with a captured text that p accepts.
func captureSet(clauses []clause, a Attribute, p *pattern) (slot int, set space.Set, ok bool) {
	for i := range clauses {
		if len(clauses[i].templates) == 0 || clauses[i].negate {
			continue
		}
		sets := []space.Set{{}}
		for _, t := range clauses[i].templates {
			if set := templateSet(t, a.Name, p); p.negate {
				sets = append(sets, space.WithTemplate(t).Not(set))
			} else {
				sets = append(sets, set)
			}
		}
		return clauses[i].slot, space.Union(sets), true
	}
	return 0, space.Set{}, false
}
