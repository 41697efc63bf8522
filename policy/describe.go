// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy/internal/inspect"
)

// A Description has the properties of a rule that are not fields of [Rule], such as its path and the requests that
// it matches. It is a value; the caller must not change the data that it refers to.
type Description struct {
	// Path is the JSON Pointer (RFC 6901) to the rule in the file.
	Path string

	// Policy is the ID of the rule's policy in a bundle, or empty. Scope is the number of the policy, from 0.
	Policy string
	Scope  int

	// Group is the number of the rule's group, from 0: rules of one group are tiers. GroupName is the name in the
	// file. It is empty if the rules are tiers because they have the same limit_keys.
	Group     int
	GroupName string

	Fallback  bool   // applies if no other rule of its policy does
	OnMissing string // as in policy files: skip, deny or empty

	// Match are the alternatives. All clauses of one of them must hold. There is at least one.
	Match [][]Clause

	SlotBy string // as in policy files; may be empty

	// Overrides are the exceptions from this rule. Exceptions from all rules are not included.
	Overrides []Override
}

// A Clause is the condition on one attribute of the requests that a rule matches.
type Clause struct {
	Attribute Attribute
	Wants     string // in words; a long list is shortened
	Selector  bool   // from the selector of the rule's policy
}

// Describe returns the descriptions of all rules, in the order of [Matcher.Rules].
func (m *Matcher) Describe() []Description {
	all := make([]Description, len(m.rules))
	for i, r := range m.rules {
		d := Description{
			Path: r.path, Policy: r.policy, Scope: r.scope, Group: r.group, GroupName: r.groupName, Fallback: r.fallback,
			OnMissing: [...]string{inspect.MissingSkip: "skip", inspect.MissingDeny: "deny", inspect.MissingEmpty: "empty"}[r.onMissing],
		}
		for _, clauses := range r.alternatives {
			var words []Clause
			for j := range clauses {
				cl := &clauses[j]
				a, wants := m.describeClause(cl)
				words = append(words, Clause{a, wants, j < r.selectorClauses})
			}
			d.Match = append(d.Match, words)
		}
		if r.slotBy != nil {
			d.SlotBy = m.attributes[r.slotBy.slot].String()
		}
		d.Overrides = m.exceptions.forRule(i)
		all[i] = d
	}
	return all
}

// forRule returns the exceptions from the i'th rule, in the order of x.all.
func (x *exceptions) forRule(i int) (list []Override) {
	if x == nil || x.rules[i] == nil {
		return nil
	}
	ids := map[string]bool{}
	for _, e := range x.rules[i].list {
		ids[e.ID] = true
	}
	for _, es := range x.rules[i].keys {
		for _, e := range es {
			ids[e.ID] = true
		}
	}
	for _, o := range x.all {
		if ids[o.ID] {
			list = append(list, o)
		}
	}
	return list
}

// Costs describes the cost of a request under a limit.
type Costs struct {
	Source   Attribute     // of the request's own cost; zero if the cost is fixed
	Default  bucket.Tokens // the fixed cost, or the cost of a request that names none
	Min, Max bucket.Tokens // bounds of the request's own cost; [bucket.MaxTokens] is no bound

	// ResponseField is the field of the response that names the cost, in lower case, or empty. BytesPerToken is above 0 if
	// the size of the response determines the cost. Default is then the cost that a request is admitted with.
	ResponseField string
	BytesPerToken int64
}

func (l *Limit) Costs() Costs {
	c := Costs{Default: l.cost.fallback, Min: l.cost.min, Max: l.cost.max, ResponseField: l.cost.field}
	if l.chargeOn != nil {
		c.BytesPerToken = l.chargeOn.unit
	}
	if l.cost.variable {
		c.Source = l.cost.source
	}
	return c
}
