// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy/internal/space"
)

// A compiler turns a tree into a matcher and collects errors on the way.
type compiler struct {
	*parse.Report
	matcher *Matcher
	now     time.Time

	drafts     []*draft
	slots      map[string]int  // by the text of an attribute
	ruleNames  map[string]bool // already used
	limitNames map[string]bool
	warned     []placedWarning

	space *space.Space // of the attributes of the matcher

	looks, cuts int // spent by the check for unreachable rules

	scope    int         // counts policies: tiers do not span policies
	id       string      // of the policy, or ""
	bundled  draft       // fields that policies inherit from their bundle
	shared   draft       // fields that rules inherit from their policy
	selector []selection // of the policy

	top         *parse.Object // of the file, for errors about the whole file
	overridable []*Rule       // the rules that overrides can name
	exceptions  exceptions
	byName      map[string]int // numbers of rules; nil until needed
	byPrefix    map[string]int // numbers of rules by key prefix; nil until needed
	namedLimits bool           // even a single limit gets a name of its own
	repeated    bool           // limits have the names of an earlier rule with the same bucket
	buckets     map[bucketName]*draft
	prices      *Prices // of the file; nil without any
	pricesBad   bool    // they have errors
	readFrom    func(file string) (*Prices, error)
	overrideIDs map[string]bool // already used
}

func newCompiler(m *Matcher, now time.Time) *compiler {
	return &compiler{
		Report: &parse.Report{}, bundled: newDraft(), shared: newDraft(), matcher: m, space: newSpace(m), now: now, scope: -1,
		slots: map[string]int{}, ruleNames: map[string]bool{}, limitNames: map[string]bool{}, overrideIDs: map[string]bool{}, buckets: map[bucketName]*draft{},
		exceptions: exceptions{rules: map[int]*ruleException{}},
	}
}

// slotFor returns the slot of the attribute a. A new attribute gets a new slot, as does the one that it follows from.
func (c *compiler) slotFor(a Attribute) int {
	if i, ok := c.slots[a.text]; ok {
		return i
	}
	from := 0
	if other, ok := a.DerivedFrom(); ok {
		from = 1 + c.slotFor(other)
	}
	i := len(c.matcher.attributes)
	c.slots[a.text] = i
	c.matcher.attributes = append(c.matcher.attributes, a)
	c.matcher.from, c.matcher.has = append(c.matcher.from, from), append(c.matcher.has, nil)
	c.matcher.uses[a.Source] = true
	return i
}

// findReader returns the first rule that matches by an attribute or has it in its key, or the file if no rule does.
func (c *compiler) findReader(slot int) *parse.Node {
	for _, d := range c.drafts {
		if slices.Contains(d.LimitKeys, c.matcher.attributes[slot]) ||
			slices.ContainsFunc(d.alternatives, func(clauses []clause) bool {
				return slices.ContainsFunc(clauses, func(cl clause) bool { return cl.slot == slot })
			}) {
			return d.at
		}
	}
	return &parse.Node{}
}

func (c *compiler) rules() []*Rule {
	if c.overridable == nil {
		for _, d := range c.drafts {
			c.overridable = append(c.overridable, d.Rule)
		}
	}
	return c.overridable
}

func (c *compiler) finish() *Matcher {
	m := c.matcher
	groups := map[string]int{}
	for _, d := range c.drafts {
		if _, ok := groups[d.group]; !ok {
			groups[d.group] = len(groups)
		}
		d.Rule.group = groups[d.group]
		c.setTag(d)
		for i := range d.Limits {
			l := &d.Limits[i]
			if a := l.Approximation; a != nil {
				c.warn(d.at, "approximated-rate", fmt.Sprintf("limit %q: the rate is lowered by the fraction %.2g, because the exact rate cannot be represented", l.Name, a.RelativeError), "")
			}
		}
		m.rules = append(m.rules, d.Rule)
	}
	m.groups, m.scopes = len(groups), max(c.scope, 0)+1
	for slot, a := range m.attributes {
		if a.Source == SourceCustom && !a.has {
			c.warn(c.findReader(slot), "custom-attribute", fmt.Sprintf("HTTP requests do not have the attribute %v: %s", a, supplierOf(a)), "")
		}
	}
	m.warnings = c.sortedWarnings()
	if m.index == nil { // checkCharges made none
		m.index = newIndex(m.attributes, c.enabledItems())
	}
	c.setExceptions(m)
	m.own = m.exceptions
	return m
}

// supplierOf returns the sources of a custom attribute, for a warning.
func supplierOf(a Attribute) string {
	name := a.String()
	switch {
	case name == "envoy:domain", strings.HasPrefix(name, "descriptor:"):
		return "it is for Envoy's rate limit service (grpc_listen); callers of /v1/take and METE.TAKE can supply it, too"
	case strings.HasPrefix(name, "envoy:context:"):
		return "it is for Envoy's external authorization over gRPC (grpc_listen); callers of /v1/take and METE.TAKE can supply it, too"
	}
	return "only an embedding program, or a caller of /v1/take or METE.TAKE, can supply it"
}

func (c *compiler) enabledItems() (items []item) {
	for i, d := range c.drafts {
		if d.Mode != ModeOff {
			items = appendItems(items, int32(i), d.alternatives, c.indexable)
		}
	}
	return items
}

// appendItems appends an item for each alternative of a rule or an override, which have one number. edit may remove
// clauses.
func appendItems(items []item, number int32, alternatives [][]clause, edit func([]clause) []clause) []item {
	if len(alternatives) == 0 {
		return append(items, item{number, nil})
	}
	for _, clauses := range alternatives {
		if edit != nil {
			clauses = edit(clauses)
		}
		items = append(items, item{number, clauses})
	}
	return items
}

// indexable returns the clauses by attributes of the request. The index does not know what a rule captures.
func (c *compiler) indexable(clauses []clause) []clause {
	captured := func(cl clause) bool { return c.matcher.attributes[cl.slot].IsCaptured() }
	if !slices.ContainsFunc(clauses, captured) {
		return clauses
	}
	return slices.DeleteFunc(slices.Clone(clauses), captured)
}

// setExceptions sets the exceptions of m, and the fields that depend on them.
func (c *compiler) setExceptions(m *Matcher) {
	if m.exceptions = nil; len(c.exceptions.all) > 0 {
		c.exceptions.finish(m.attributes)
		m.exceptions = &c.exceptions
	}
	m.enforced = newEnforced(m)
	m.timed = slices.ContainsFunc(m.rules, func(r *Rule) bool { return r.active != nil })
	m.delays = m.anyLimit(func(l *Limit) bool {
		return l.Bucket.Queued() || slices.ContainsFunc(l.Stages, func(s Stage) bool { return s.Delay > 0 })
	})
	m.awaits = false
	m.anyLimit(func(l *Limit) bool {
		if l.AwaitsResponse() {
			m.awaits = true
			if l.response == nil {
				l.response = new(responseTime)
			}
		}
		return false
	})
}
