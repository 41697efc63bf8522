// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/policy/internal/inspect"
)

// SlotAttributes returns the attributes by slot, for packages lint and diff. Other than [Matcher.Attributes], they include
// the attributes that has makes. It is not part of the API.
func (m *Matcher) SlotAttributes() []Attribute { return slices.Clone(m.attributes) }

// Inspect returns the view of m that package lint needs. It is not part of the API.
func (m *Matcher) Inspect() inspect.Policy {
	p := inspect.Policy{Space: newSpace(m), Has: map[int]inspect.Has{}, Rules: make([]inspect.Rule, len(m.rules))}
	for slot, has := range m.has {
		if has != nil {
			p.Has[slot] = inspect.Has{Of: m.from[slot] - 1, Value: has.sampleValue()}
		}
	}
	for i, r := range m.rules {
		p.Rules[i] = inspect.Rule{
			Path: r.path, Group: r.group, Scope: r.scope, Selected: r.selectorClauses, Fallback: r.fallback, Timed: r.active != nil, Missing: r.onMissing,
			Limits: inspectLimits(r),
		}
		for _, clauses := range r.alternatives {
			takes, _ := m.boxOf(p.Space, r, clauses)
			p.Rules[i].Alternatives = append(p.Rules[i].Alternatives, inspect.Alternative{Clauses: m.inspectClauses(clauses), Takes: takes})
		}
	}
	if m.own != nil {
		for _, e := range m.own.inFile {
			o := inspect.Override{Path: e.path, Action: string(e.Action), ExpiresAt: e.ExpiresAt}
			for _, clauses := range e.alternatives {
				o.Match = append(o.Match, m.inspectClauses(clauses))
			}
			p.Overrides = append(p.Overrides, o)
		}
	}
	return p
}

func (m *Matcher) inspectClauses(clauses []clause) (all []inspect.Clause) {
	for i := range clauses {
		c := &clauses[i]
		all = append(all, inspect.Clause{Slot: c.slot, Negate: c.negate, Exact: c.exact, Prefixes: c.prefixes, Suffixes: c.suffixes, Templates: c.templates, Set: c.pattern.toSet(m.attributes[c.slot])})
	}
	return all
}

func inspectLimits(r *Rule) (all []inspect.Limit) {
	for i := range r.Limits {
		l := &r.Limits[i]
		entry := r.path + "/limits/" + strconv.Itoa(i)
		if !strings.HasPrefix(l.path, r.path+"/limits/") {
			entry = l.path
		}
		all = append(all, inspect.Limit{Path: entry, Fields: l.path, Starts: l.starts, Defaults: l.defaults})
	}
	return all
}
