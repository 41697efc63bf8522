// SPDX-License-Identifier: Apache-2.0

// Package diff compares two policies rule by rule, and finds requests that they decide differently. Use it to
// review a policy before deployment:
//
//	for _, d := range diff.Compare(old, new, time.Now()) {
//		fmt.Println(d.Kind, d.Rule, d.Changes)
//	}
//
// No difference means that both policies allow, deny and charge every request alike. Different spellings of one
// policy have no differences. If several rules deny a request, the response names one of them; the choice does not
// count as a difference.
package diff

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/internal/inspect"
	"github.com/metehq/mete/policy/internal/space"
)

// A Kind is the kind of a difference.
type Kind string

// The kinds. KindRuleMoved is an unchanged rule that loses requests to, or gains requests from, another unchanged rule
// because their order changed.
const (
	KindRuleAdded       Kind = "rule_added"
	KindRuleRemoved     Kind = "rule_removed"
	KindRuleRenamed     Kind = "rule_renamed"
	KindRuleChanged     Kind = "rule_changed"
	KindRuleMoved       Kind = "rule_moved"
	KindOverrideAdded   Kind = "override_added"
	KindOverrideRemoved Kind = "override_removed"
	KindOverrideChanged Kind = "override_changed"
)

// A Difference is a rule or an override that differs between two policies. It is a value.
type Difference struct {
	Kind Kind

	// Rule is the name of a rule, in the new policy if it exists there. Was is the old name of a renamed rule.
	// Override is the ID of an override.
	Rule, OldName, Override string

	// Changes are the fields of a changed rule or override, in the order of the language.
	Changes []Change

	// Before are the rules that took requests from a moved rule only in the old policy. After are the
	// rules that take them only in the new policy.
	Before, After []string

	// Example is a request that shows the difference, or nil.
	Example *Example
}

// A Change is one field of a rule, a limit or an override in two policies, in words. A missing value is empty.
type Change struct {
	Limit    string // the name of the limit that has the field; empty for a field of the rule
	Field    string // its name in policy files
	Old, New string
}

// An Example is a request and both decisions about it. The decisions can be equal, because some differences appear
// only when the store fails, for other keys, or in header fields.
type Example struct {
	Request  policy.Map
	Old, New Decision
}

// A Decision is the outcome of a request under one policy.
type Decision struct {
	policy.Verdict
	Matches []policy.Match
}

// Compare returns the differences between two policies: the rules of the new policy in their order, then removed
// rules, then overrides. It ignores expired overrides. Load both policies with the same [policy.Options.HashKey].
//
// Compare treats attributes as independent. If the policies have too many overlapping rules, it reports rules as
// moved that may not have moved.
func Compare(old, new *policy.Matcher, now time.Time) []Difference {
	c := &comparer{now: bucket.At(now), slots: map[string]int{}}
	c.space = space.New(func(slot int) space.Attribute { return c.attributes[slot] })
	c.old, c.new = c.newSide(old), c.newSide(new)
	c.pair()
	var found []Difference
	for i := range c.new.rules {
		found = append(found, c.compareRule(&c.new.rules[i])...)
	}
	for i := range c.old.rules {
		if r := &c.old.rules[i]; r.twin == nil && r.Mode != policy.ModeOff {
			found = append(found, Difference{Kind: KindRuleRemoved, Rule: r.Name, Example: c.newExample(&c.old, r)})
		}
	}
	return append(found, c.compareOverrides()...)
}

type comparer struct {
	old, new   side
	space      *space.Space // of both policies
	attributes []space.Attribute
	sources    []policy.Source // of attributes
	captured   []bool          // the attributes that no request has
	has        []*inspect.Has  // the attributes that has makes
	slots      map[string]int  // of attributes, by name
	now        bucket.Instant
	looks      int          // comparisons so far to find moved rules
	near       *space.Index // of the new rules; nil until needed
}

type side struct {
	*policy.Matcher
	view  inspect.Policy
	slots []int // slots of the comparer, by slot of the policy
	rules []rule

	owners []int // the rules of all boxes; nil until needed
}

type rule struct {
	*policy.Rule
	view        *inspect.Rule
	description *policy.Description
	index       int // in the rules of its side
	first       int // its first box in the index of all boxes

	match []space.Box // the requests that each alternative of its match accepts
	boxes []space.Box // the requests that each alternative and its key accept

	twin *rule  // the same rule in the other policy; may be nil
	same bool   // it is unchanged
	set  uint64 // hash of the unchanged rules before it
}

func (c *comparer) newSide(m *policy.Matcher) side {
	s := side{Matcher: m, view: m.Inspect()}
	for slot, a := range m.SlotAttributes() {
		at, ok := c.slots[a.String()]
		if !ok {
			at = len(c.attributes)
			c.slots[a.String()] = at
			c.attributes, c.sources = append(c.attributes, s.view.Space.Attribute(slot)), append(c.sources, a.Source)
			c.captured, c.has = append(c.captured, a.IsCaptured()), append(c.has, nil)
		}
		s.slots = append(s.slots, at)
		if has, ok := s.view.Has[slot]; ok {
			c.has[at] = &inspect.Has{Of: s.slots[has.Of], Value: has.Value} // the compiler makes the other slot first
		}
	}
	about := m.Describe()
	for i, r := range m.Rules() {
		view := &s.view.Rules[i]
		one := rule{Rule: r, view: view, description: &about[i], index: i}
		for _, alt := range view.Alternatives {
			one.match, one.boxes = append(one.match, c.boxOf(&s, alt.Clauses)), append(one.boxes, s.translate(alt.Takes))
		}
		s.rules = append(s.rules, one)
	}
	return s
}

// translate converts a box to the slots of the comparer.
func (s *side) translate(b space.Box) (out space.Box) {
	for _, side := range b {
		out = out.With(s.slots[side.Slot], side.Set)
	}
	return out
}

// pair matches the rules of both policies by name, then finds renamed rules.
func (c *comparer) pair() {
	names := map[string]*rule{}
	for i := range c.old.rules {
		names[c.old.rules[i].Name] = &c.old.rules[i]
	}
	var added []*rule
	for i := range c.new.rules {
		r := &c.new.rules[i]
		if twin := names[r.Name]; twin != nil {
			c.join(twin, r)
			delete(names, r.Name)
			continue
		}
		added = append(added, r)
	}
	for _, r := range added[:min(len(added), maxRenamed)] {
		for i := range c.old.rules {
			o := &c.old.rules[i]
			if o.twin == nil && o.Mode != policy.ModeOff && len(o.Limits) == len(r.Limits) && len(c.changes(o, r)) == 0 {
				c.join(o, r)
				break
			}
		}
	}
}

// maxRenamed bounds the rules that are compared to find renamed ones.
const maxRenamed = 100

func (c *comparer) join(old, new *rule) {
	old.twin, new.twin = new, old
	new.same = old.Name == new.Name && len(c.changes(old, new)) == 0
	old.same = new.same
}

func (c *comparer) compareRule(r *rule) []Difference {
	o := r.twin
	switch {
	case o == nil && r.Mode == policy.ModeOff, o != nil && o.Mode == policy.ModeOff && r.Mode == policy.ModeOff:
		return nil // it decides nothing
	case o == nil:
		return []Difference{{Kind: KindRuleAdded, Rule: r.Name, Example: c.newExample(&c.new, r)}}
	case o.Name != r.Name:
		return []Difference{{Kind: KindRuleRenamed, Rule: r.Name, OldName: o.Name, Example: c.newExample(&c.new, r)}}
	case !r.same:
		return []Difference{{Kind: KindRuleChanged, Rule: r.Name, Changes: c.changes(o, r), Example: c.newExampleOfBoth(o, r)}}
	}
	return c.compareOrder(o, r)
}

func (c *comparer) changes(old, new *rule) (all []Change) {
	note := func(limit, field, was, is string) {
		if was != is {
			all = append(all, Change{limit, field, was, is})
		}
	}
	if !c.equalUnions(old.match, new.match) || !equalCaptures(old, new) || old.view.Fallback != new.view.Fallback {
		all = append(all, Change{Field: "match", Old: matchWords(old), New: matchWords(new)})
	}
	note("", "limit_keys", keyWords(old.Rule), keyWords(new.Rule))
	note("", "mode", old.Mode.String(), new.Mode.String())
	compareFacts(old.Rule.Facts(), new.Rule.Facts(), func(field, was, is string) { note("", field, was, is) })
	for i := range max(len(old.Limits), len(new.Limits)) {
		switch {
		case i >= len(old.Limits):
			note(limitName(new, i), "limits", "", bucketWords(new.Limits[i].Bucket))
		case i >= len(new.Limits):
			note(limitName(old, i), "limits", bucketWords(old.Limits[i].Bucket), "")
		default:
			c.compareLimits(old, new, i, note)
		}
	}
	return all
}

func (c *comparer) compareLimits(old, new *rule, i int, note func(limit, field, was, is string)) {
	o, n := &old.Limits[i], &new.Limits[i]
	name := limitName(new, i)
	note(name, "name", limitName(old, i), name)
	c.compareBuckets(name, o.Bucket, n.Bucket, note)
	compareFacts(o.Facts(), n.Facts(), func(field, was, is string) { note(name, field, was, is) })
}

func (c *comparer) compareBuckets(name string, was, is bucket.Limit, note func(limit, field, was, is string)) {
	if was == is {
		return
	}
	if was.Algorithm() != is.Algorithm() || was.Queued() != is.Queued() {
		note(name, "algorithm", bucketWords(was), bucketWords(is))
		return
	}
	seen := false
	field := func(field, was, is string) {
		seen = seen || was != is
		note(name, field, was, is)
	}
	field("rate", was.Rate().String(), is.Rate().String())
	if was.Algorithm() == bucket.AlgorithmContinuous || was.Algorithm() == bucket.AlgorithmStepped {
		field("burst", was.Capacity().String(), is.Capacity().String())
	}
	debt := "max_reserved"
	if was.Queued() {
		debt = "queue"
	}
	field(debt, debtWords(was), debtWords(is))
	field("anchor", anchorWords(was), anchorWords(is))
	if !seen { // a part that has no words
		field("algorithm_config", was.Encode(), is.Encode())
	}
}

func compareFacts(old, new []policy.Fact, note func(field, was, is string)) {
	for _, o := range old {
		i := slices.IndexFunc(new, func(n policy.Fact) bool { return n.Field == o.Field })
		if i < 0 {
			note(o.Field, o.Value, "")
		} else {
			note(o.Field, o.Value, new[i].Value)
		}
	}
	for _, n := range new {
		if !slices.ContainsFunc(old, func(o policy.Fact) bool { return o.Field == n.Field }) {
			note(n.Field, "", n.Value)
		}
	}
}

// limitName returns the name of a limit without the name of its rule.
func limitName(r *rule, i int) string {
	return strings.TrimPrefix(strings.TrimPrefix(r.Limits[i].Name, cmp.Or(r.Bucket, r.Name)), "/")
}

func bucketWords(l bucket.Limit) string {
	if l.Queued() {
		return "leaky_bucket: " + l.String()
	}
	return l.Algorithm().String() + ": " + l.String()
}

// debtWords describes how many tokens requests may reserve. It returns "" if only the arithmetic bounds them.
func debtWords(l bucket.Limit) string {
	_, p := l.Refill()
	if l.Algorithm() != bucket.AlgorithmContinuous {
		p = 1
	}
	if n, _ := l.Refill(); l.Anchor() == bucket.AnchorCalendar && l.Capacity()+l.MaxReserved() == bucket.MaxCalendarWindows*n {
		return ""
	}
	if int64(l.Capacity()+l.MaxReserved()) >= (1<<53-1)/max(p, 1)-1 {
		return ""
	}
	return l.MaxReserved().String()
}

func anchorWords(l bucket.Limit) string {
	if l.Algorithm() != bucket.AlgorithmStepped {
		return ""
	}
	if c, ok := l.Calendar(); ok {
		return c.String()
	}
	words := [...]string{bucket.AnchorEpoch: "epoch", bucket.AnchorKey: "key", bucket.AnchorFirst: "first"}
	if start := l.Start(); start != 0 {
		return words[l.Anchor()] + " and " + start.String()
	}
	return words[l.Anchor()]
}

func keyWords(r *policy.Rule) string {
	names := make([]string, len(r.LimitKeys))
	for i, a := range r.LimitKeys {
		names[i] = a.Spelling()
	}
	return strings.Join(names, ", ")
}

func matchWords(r *rule) string {
	var alternatives []string
	for _, clauses := range r.description.Match {
		var parts []string
		for _, c := range clauses {
			wants := c.Wants
			if c.Attribute.IsSecret() && strings.Contains(wants, `"`) {
				wants = "…"
			}
			parts = append(parts, c.Attribute.String()+" is "+wants)
		}
		if r.view.Fallback {
			parts = append(parts, "no other rule of its policy applies")
		}
		if len(parts) == 0 {
			parts = append(parts, "all requests")
		}
		alternatives = append(alternatives, strings.Join(parts, ", "))
	}
	return strings.Join(alternatives, "; or ")
}

// equalCaptures reports whether two rules with captured keys have the same templates. Other templates of the same
// paths can capture other segments.
func equalCaptures(old, new *rule) bool {
	captured := func(r *rule) bool {
		return slices.ContainsFunc(r.LimitKeys, policy.Attribute.IsCaptured) || capturesCost(r)
	}
	return !captured(old) && !captured(new) || templateWords(old) == templateWords(new)
}

func capturesCost(r *rule) bool {
	return slices.ContainsFunc(r.Limits, func(l policy.Limit) bool { return l.Costs().Source.IsCaptured() })
}

func templateWords(r *rule) string {
	var words []string
	for _, alt := range r.view.Alternatives {
		for _, c := range alt.Clauses {
			for _, t := range c.Templates {
				words = append(words, t.String())
			}
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func (c *comparer) equalBoxes(a, b space.Box) bool {
	return c.space.Within(a, b) && c.space.Within(b, a)
}

// equalUnions reports whether two lists of boxes have the same requests. It returns false if the search exceeds its
// bound.
func (c *comparer) equalUnions(a, b []space.Box) bool {
	if len(a) == 1 && len(b) == 1 {
		return c.equalBoxes(a[0], b[0])
	}
	return c.covers(a, b) && c.covers(b, a)
}

// covers reports whether the boxes of b have all requests of a.
func (c *comparer) covers(b, a []space.Box) bool {
	left := a
	for _, e := range b {
		if left = c.space.Subtract(left, e); len(left) > maxPieces {
			return false
		}
	}
	return len(left) == 0
}

func (c *comparer) areApart(a, b []space.Box) bool {
	return !slices.ContainsFunc(a, func(x space.Box) bool {
		return slices.ContainsFunc(b, func(y space.Box) bool { return !c.space.Apart(x, y) })
	})
}

// intersect returns the requests that are in both lists of boxes.
func (c *comparer) intersect(a, b []space.Box) (both []space.Box) {
	for _, x := range a {
		for _, y := range b {
			if !c.space.Apart(x, y) {
				both = append(both, c.space.And(x, y))
			}
		}
	}
	return both
}
