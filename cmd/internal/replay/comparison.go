// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/diff"
)

// A Change is the effect of a new policy on one request.
type Change uint8

const (
	ChangeNoneAllowed   Change = iota // allowed by both policies
	ChangeNoneDenied                  // denied by both policies
	ChangeNewlyLimited                // allowed by the old policy, denied by the new one
	ChangeNewlyAdmitted               // denied by the old policy, allowed by the new one
	changes
)

var changeNames = [changes]string{"allowed_by_both", "denied_by_both", "newly_limited", "newly_admitted"}

// String returns the name of the change in JSON, such as newly_limited.
func (c Change) String() string { return changeNames[c] }

// ChangeOf compares the decisions of two policies about a request.
func ChangeOf(old, new *mete.Decision) Change {
	switch {
	case old.Allowed && new.Allowed:
		return ChangeNoneAllowed
	case old.Allowed:
		return ChangeNewlyLimited
	case new.Allowed:
		return ChangeNewlyAdmitted
	}
	return ChangeNoneDenied
}

// Differs reports whether the policies disagree.
func (c Change) Differs() bool { return c == ChangeNewlyLimited || c == ChangeNewlyAdmitted }

// ruleChange counts the decisions of a rule in the old and the new policy. A denied request counts for the rule
// that denied it.
type ruleChange struct {
	name     string
	edit     string   // change of the rule; empty if unchanged
	denied   [2]int64 // old, new
	shadowed [2]int64 // old, new; denied only in shadow mode
	changed  [changes]int64
	over     [2]series // denied by the old and the new rule over time; nil before the first denial
}

// A Comparison counts how two policies differ in a replay, in bounded memory. Create it with [NewComparison]. It
// is not safe for concurrent use.
type Comparison struct {
	counts
	new      *policy.Matcher
	policies [2]map[string]*policy.Rule // by name
	rules    []*ruleChange              // rules of the new policy in order, then removed rules
	byName   map[string]*ruleChange

	changed  [changes]span
	shadowed [2]int64 // allowed, but denied by a rule in shadow mode
	delayed  [2]int64 // admitted with a delay

	over [changes]series // over time

	keys [changes]toplist // keys with changed decisions
	id   []byte
}

func NewComparison(old, new *policy.Matcher) *Comparison {
	c := &Comparison{new: new, counts: newCounts(), byName: map[string]*ruleChange{}}
	for i, m := range [...]*policy.Matcher{old, new} {
		c.policies[i] = map[string]*policy.Rule{}
		for _, r := range m.Rules() {
			c.policies[i][r.Name] = r
		}
	}
	for _, m := range [...]*policy.Matcher{new, old} {
		for _, r := range m.Rules() {
			c.rule(r.Name)
		}
	}
	c.findEdits(old)
	for i := range c.keys {
		c.keys[i], c.over[i] = newToplist(), c.line.newSeries()
	}
	return c
}

// Changes of rules between two policies.
const (
	added   = "added"
	removed = "removed"
	changed = "changed"
)

// findEdits records the changes of rules, as mete diff finds them. The order of rules does not count.
func (c *Comparison) findEdits(old *policy.Matcher) {
	for _, d := range diff.Compare(old, c.new, time.Now()) {
		switch d.Kind {
		case diff.KindRuleAdded:
			c.rule(d.Rule).edit = added
		case diff.KindRuleRemoved:
			c.rule(d.Rule).edit = removed
		case diff.KindRuleRenamed:
			c.rule(d.Rule).edit, c.rule(d.OldName).edit = added, removed
		case diff.KindRuleChanged:
			c.rule(d.Rule).edit = changed
		}
	}
}

// Count returns the number of requests with this change.
func (c *Comparison) Count(change Change) int64 { return c.changed[change].count }

// Add counts the decisions of two policies about a request. It calls place for the position in the trace if it
// needs an example.
func (c *Comparison) Add(req *trace.Request, old, new *mete.Decision, place func() string) {
	change := ChangeOf(old, new)
	c.count(req.At)
	c.changed[change].add(req.At)
	c.over[change][c.line.binAt(req.At)]++
	for i, d := range [...]*mete.Decision{old, new} {
		if !d.Allowed {
			c.addDenial(i, req, c.rule(denier(d)))
		}
		if d.Wait > 0 {
			c.delayed[i]++
		}
		c.addShadow(i, d)
	}
	switch change {
	case ChangeNewlyLimited:
		c.addKey(change, req, 1, new, place)
	case ChangeNewlyAdmitted:
		c.addKey(change, req, 0, old, place)
	}
}

func (c *Comparison) addDenial(i int, req *trace.Request, r *ruleChange) {
	if r.over[i] == nil {
		r.over[i] = c.sparks.newSeries()
	}
	r.denied[i]++
	r.over[i][c.sparks.binAt(req.At)]++
}

// addShadow counts the rules that deny a request only in shadow mode.
func (c *Comparison) addShadow(i int, d *mete.Decision) {
	denied := false
	var last *policy.Rule // limits of one rule are adjacent
	for j := range d.Shadow {
		if s := &d.Shadow[j]; !s.Allowed && s.Rule != last {
			last, denied = s.Rule, true
			c.rule(s.Rule.Name).shadowed[i]++
		}
	}
	if denied {
		c.shadowed[i]++
	}
}

// addKey counts the key of a request with different decisions, for the rule that denies it.
func (c *Comparison) addKey(change Change, req *trace.Request, i int, d *mete.Decision, place func() string) {
	c.rule(denier(d)).changed[change]++
	rule := c.policies[i][d.Rule]
	if decider := d.Decider(); decider != nil {
		rule = decider.Rule
	}
	if rule == nil {
		rule = &policy.Rule{Name: denier(d)} // an override, which has one bucket for all
	}
	c.id = appendKeyID(c.id[:0], req, rule)
	if entry, isNew := c.keys[change].add(c.id, req.At); isNew {
		entry.rule, entry.key = rule.Name, describeKey(req, rule)
		entry.place, entry.request = place(), describeRequest(req)
	}
}

func denier(d *mete.Decision) string {
	if d.Rule == "" && d.Override != nil {
		return "override " + d.Override.ID
	}
	return d.Rule
}

func (c *Comparison) rule(name string) *ruleChange {
	r, ok := c.byName[name]
	if !ok {
		r = &ruleChange{name: name}
		c.rules, c.byName[name] = append(c.rules, r), r
	}
	return r
}
