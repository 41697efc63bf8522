// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy/internal/space"
)

// A compiler turns a tree into a matcher, and collects mistakes on the way.
type compiler struct {
	*parse.Report
	matcher *Matcher
	now     time.Time

	drafts     []*draft
	slots      map[string]int  // of attributes, by their text
	ruleNames  map[string]bool // that are taken
	limitNames map[string]bool
	warned     []placedWarning

	space *space.Space // of the attributes of the matcher

	looks, cuts int // of the check for rules that can never match

	scope    int         // counts policies: tiers do not reach beyond one
	id       string      // of the policy, "" for none
	bundled  draft       // what policies inherit from their bundle
	shared   draft       // what rules inherit from their policy
	selector []selection // which requests the policy is about

	top         *parse.Object // of the file, for what is said of it as a whole
	known       []*Rule       // whose overrides are read
	exceptions  exceptions
	byName      map[string]int  // numbers of rules, once somebody asks
	byPrefix    map[string]int  // of those whose limits have keys that begin so
	several     bool            // limits have names of their own, were it only one
	overrideIDs map[string]bool // that are taken
}

func newCompiler(m *Matcher, now time.Time) *compiler {
	return &compiler{
		Report: &parse.Report{}, bundled: newDraft(), shared: newDraft(), matcher: m, space: newSpace(m), now: now, scope: -1,
		slots: map[string]int{}, ruleNames: map[string]bool{}, limitNames: map[string]bool{}, overrideIDs: map[string]bool{},
		exceptions: exceptions{rules: map[int]*ruleException{}},
	}
}

// slot returns where requests keep the attribute a.
func (c *compiler) slot(a Attribute) int {
	if i, ok := c.slots[a.text]; ok {
		return i
	}
	i := len(c.matcher.attributes)
	c.slots[a.text] = i
	c.matcher.attributes = append(c.matcher.attributes, a)
	c.matcher.uses[a.Source] = true
	return i
}

// reader is the first rule that matches by an attribute or has it in its key; where
// there is none, the file.
func (c *compiler) reader(slot int) *parse.Node {
	for _, d := range c.drafts {
		if slices.Contains(d.LimitKeys, c.matcher.attributes[slot]) ||
			slices.ContainsFunc(d.clauses, func(cl clause) bool { return cl.slot == slot }) {
			return d.at
		}
	}
	return &parse.Node{}
}

// rules are those that overrides can name.
func (c *compiler) rules() []*Rule {
	if c.known == nil {
		for _, d := range c.drafts {
			c.known = append(c.known, d.Rule)
		}
	}
	return c.known
}

// finish returns the matcher of a file without mistakes.
func (c *compiler) finish() *Matcher {
	m := c.matcher
	groups := map[string]int{}
	for _, d := range c.drafts {
		if _, ok := groups[d.group]; !ok {
			groups[d.group] = len(groups)
		}
		d.Rule.group = groups[d.group]
		c.tag(d)
		for i := range d.Limits {
			l := &d.Limits[i]
			if a := l.Approximation; a != nil {
				c.warn(d.at, "approximated-rate", fmt.Sprintf("limit %q: the rate is lowered by %.2g of itself: the exact one does not fit", l.Name, a.RelativeError), "")
			}
		}
		m.rules = append(m.rules, d.Rule)
	}
	m.groups, m.scopes = len(groups), max(c.scope, 0)+1
	for slot, a := range m.attributes {
		if a.Source == SourceCustom {
			c.warn(c.reader(slot), "custom-attribute", fmt.Sprintf("no request over HTTP has the attribute %v: a program supplies it that embeds mete, or asks /v1/take", a), "")
		}
	}
	m.warnings = c.warnings()
	if m.index == nil { // charges made none
		m.index = newIndex(m.attributes, c.items())
	}
	c.except(m)
	m.own = m.exceptions
	return m
}

// items are the rules that are not off, for an index.
func (c *compiler) items() (items []item) {
	for i, d := range c.drafts {
		if d.Mode != ModeOff {
			items = append(items, item{int32(i), d.clauses})
		}
	}
	return items
}

// except gives m the exceptions that were read, and what depends on them.
func (c *compiler) except(m *Matcher) {
	if m.exceptions = nil; len(c.exceptions.all) > 0 {
		c.exceptions.finish(m.attributes)
		m.exceptions = &c.exceptions
	}
	m.enforced = newEnforced(m)
	m.delays = m.anyLimit(func(l *Limit) bool {
		return l.Bucket.Queued() || slices.ContainsFunc(l.Stages, func(s Stage) bool { return s.Delay > 0 })
	})
}
