// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/diff"
)

// A Change is what a new policy means for one request.
type Change uint8

const (
	SameAllowed   Change = iota // by both
	SameDenied                  // by both, for whatever reason
	NewlyLimited                // allowed by the old, denied by the new
	NewlyAdmitted               // denied by the old, allowed by the new
	changes
)

var changeNames = [changes]string{"allowed_by_both", "denied_by_both", "newly_limited", "newly_admitted"}

// String returns the change's name in JSON: newly_limited.
func (c Change) String() string { return changeNames[c] }

// ChangeOf compares two decisions about a request.
func ChangeOf(old, new *mete.Decision) Change {
	switch {
	case old.Allowed && new.Allowed:
		return SameAllowed
	case old.Allowed:
		return NewlyLimited
	case new.Allowed:
		return NewlyAdmitted
	}
	return SameDenied
}

// Differs reports whether the two policies disagree.
func (c Change) Differs() bool { return c == NewlyLimited || c == NewlyAdmitted }

// ruleChange counts what the rules of one name do in the old and the new policy.
// A request is counted under the rule that denied it.
type ruleChange struct {
	name     string
	edit     string   // what was done to the rule; empty for nothing
	denied   [2]int64 // by the old, by the new
	shadowed [2]int64 // would be denied if it were enforced
	changed  [changes]int64
	over     [2]series // time: those denied by the old, by the new; nil before the first
}

// Comparison counts how two policies differ in a replay. It is made by
// [NewComparison] and not safe for concurrent use. Its memory is bounded, however
// many keys there are.
type Comparison struct {
	counts
	new      *policy.Matcher
	policies [2]map[string]*policy.Rule // by name
	rules    []*ruleChange              // in the order of the new policy, then of the old one
	byName   map[string]*ruleChange

	changed  [changes]span
	shadowed [2]int64 // allowed, but denied by a rule in shadow
	delayed  [2]int64 // admitted to start later

	over [changes]series // time

	keys [changes]toplist // of those that differ
	id   []byte
}

// NewComparison returns the empty comparison of two policies.
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

// The edits to rules between two policies.
const (
	added   = "added"
	removed = "removed"
	changed = "changed"
)

// findEdits notes the edits to rules, as mete diff finds them. The order of rules is no edit.
func (c *Comparison) findEdits(old *policy.Matcher) {
	for _, d := range diff.Compare(old, c.new, time.Now()) {
		switch d.Kind {
		case diff.RuleAdded:
			c.rule(d.Rule).edit = added
		case diff.RuleRemoved:
			c.rule(d.Rule).edit = removed
		case diff.RuleRenamed:
			c.rule(d.Rule).edit, c.rule(d.Was).edit = added, removed
		case diff.RuleChanged:
			c.rule(d.Rule).edit = changed
		}
	}
}

// Count is to how many requests that happened.
func (c *Comparison) Count(change Change) int64 { return c.changed[change].count }

// Add counts what two policies say about a request. Place is called for where in
// the trace that is, where the comparison remembers it.
func (c *Comparison) Add(req *trace.Request, old, new *mete.Decision, place func() string) {
	change := ChangeOf(old, new)
	c.count(req.At)
	c.changed[change].add(req.At)
	c.over[change][c.line.at(req.At)]++
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
	case NewlyLimited:
		c.addKey(change, req, 1, new, place)
	case NewlyAdmitted:
		c.addKey(change, req, 0, old, place)
	}
}

// addDenial counts a request that a rule of one policy denied.
func (c *Comparison) addDenial(i int, req *trace.Request, r *ruleChange) {
	if r.over[i] == nil {
		r.over[i] = c.sparks.newSeries()
	}
	r.denied[i]++
	r.over[i][c.sparks.at(req.At)]++
}

// addShadow counts the rules that deny a request in shadow only.
func (c *Comparison) addShadow(i int, d *mete.Decision) {
	denied := false
	var last *policy.Rule // a rule's limits stand together
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

// addKey counts the key of a request that the policies disagree about, under the
// rule of the one that denies it.
func (c *Comparison) addKey(change Change, req *trace.Request, i int, d *mete.Decision, place func() string) {
	c.rule(denier(d)).changed[change]++
	rule := c.policies[i][d.Rule]
	if decider := d.Decider(); decider != nil {
		rule = decider.Rule
	}
	if rule == nil {
		rule = &policy.Rule{Name: denier(d)} // of no policy: one for everyone
	}
	c.id = appendKeyID(c.id[:0], req, rule)
	if entry, isNew := c.keys[change].add(c.id, req.At); isNew {
		entry.rule, entry.key = rule.Name, describeKey(req, rule)
		entry.place, entry.request = place(), describeRequest(req)
	}
}

// denier names what denied a request: a rule, or an override.
func denier(d *mete.Decision) string {
	if d.Rule == "" && d.Override != nil {
		return "override " + d.Override.ID
	}
	return d.Rule
}

// rule returns the counts of the rules of that name.
func (c *Comparison) rule(name string) *ruleChange {
	r, ok := c.byName[name]
	if !ok {
		r = &ruleChange{name: name}
		c.rules, c.byName[name] = append(c.rules, r), r
	}
	return r
}
