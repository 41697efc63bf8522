// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy/internal/inspect"
)

// A Description says of a rule what is to be known of it beside its fields: where it
// stands, and which requests it is about. It is a value; what it refers to must not be
// changed.
type Description struct {
	// Path is the place of the rule in the file: a JSON Pointer (RFC 6901).
	Path string

	// Policy is the id of its policy in a bundle, empty for none, and Scope tells
	// policies apart: it counts them from 0.
	Policy string
	Scope  int

	// Group tells groups apart, whose rules are tiers of one thing: it counts them from
	// 0. GroupName is what the file calls it, empty where tiers are those with the same
	// limit_keys.
	Group     int
	GroupName string

	Fallback  bool     // it applies where no other rule of its policy does
	OnMissing string   // as in policy files: skip, deny or empty
	Match     []Clause // all must hold
	SlotBy    string   // as in policy files; empty for none

	// Overrides are the exceptions from this rule, and not those from all.
	Overrides []Override
}

// A Clause is one attribute's part in which requests a rule is about.
type Clause struct {
	Attribute Attribute
	Wants     string // in words: of many values only some are there
	Selector  bool   // it is of the selector of the rule's policy
}

// Describe returns the descriptions of all rules, in the order of [Matcher.Rules].
func (m *Matcher) Describe() []Description {
	all := make([]Description, len(m.rules))
	for i, r := range m.rules {
		d := Description{
			Path: r.path, Policy: r.policy, Scope: r.scope, Group: r.group, GroupName: r.grouped, Fallback: r.fallback,
			OnMissing: [...]string{inspect.MissingSkip: "skip", inspect.MissingDeny: "deny", inspect.MissingEmpty: "empty"}[r.onMissing],
		}
		for j := range r.clauses {
			cl := &r.clauses[j]
			d.Match = append(d.Match, Clause{m.attributes[cl.slot], cl.pattern.String(), j < r.selected})
		}
		if r.slotBy != nil {
			d.SlotBy = m.attributes[r.slotBy.slot].String()
		}
		d.Overrides = m.exceptions.from(i)
		all[i] = d
	}
	return all
}

// from are the exceptions from the i'th rule, in the order of all.
func (x *exceptions) from(i int) (list []Override) {
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

// Costs say what a request costs under a limit.
type Costs struct {
	Source   Attribute     // where a request says it; zero where the cost is fixed
	Default  bucket.Tokens // the cost, or that of a request that says nothing of it
	Min, Max bucket.Tokens // bounds of what a request says; [bucket.MaxTokens] is none
}

// Costs returns what a request costs under l that brings no cost of its own.
func (l *Limit) Costs() Costs {
	c := Costs{Default: l.cost.fallback, Min: l.cost.min, Max: l.cost.max}
	if l.cost.variable {
		c.Source = l.cost.source
	}
	return c
}
