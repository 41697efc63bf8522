// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strconv"
	"strings"

	"github.com/metehq/mete/policy/internal/inspect"
)

// Inspect returns the view of m that package lint needs. It is not part of the API.
func (m *Matcher) Inspect() inspect.Policy {
	p := inspect.Policy{Space: newSpace(m), Rules: make([]inspect.Rule, len(m.rules))}
	for i, r := range m.rules {
		takes, _ := m.boxOf(p.Space, r)
		p.Rules[i] = inspect.Rule{
			Path: r.path, Group: r.group, Scope: r.scope, Selected: r.selectorClauses, Fallback: r.fallback, Missing: r.onMissing,
			Clauses: m.inspectClauses(r.clauses), Takes: takes, Limits: inspectLimits(r),
		}
	}
	if m.own != nil {
		for _, e := range m.own.inFile {
			p.Overrides = append(p.Overrides, inspect.Override{Path: e.path, Action: string(e.Action), ExpiresAt: e.ExpiresAt, Match: m.inspectClauses(e.clauses)})
		}
	}
	return p
}

func (m *Matcher) inspectClauses(clauses []clause) (all []inspect.Clause) {
	for i := range clauses {
		c := &clauses[i]
		all = append(all, inspect.Clause{Slot: c.slot, Negate: c.negate, Exact: c.exact, Prefixes: c.prefixes, Set: c.pattern.toSet(m.attributes[c.slot])})
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
