// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
)

// A compiler turns a tree into a matcher, and collects mistakes on the way.
type compiler struct {
	*report
	matcher *Matcher
	now     time.Time

	drafts     []*draft
	slots      map[string]int  // of attributes, by their text
	ruleNames  map[string]bool // that are taken
	limitNames map[string]bool
	warned     []placedWarning

	universe []set // what attributes can be, by slot

	scope  int  // counts policies: tiers do not reach beyond one
	shadow bool // the policy puts all its rules in shadow

	bundleSlotBy *Attribute // nil where the bundle names none
	slotBy       *Attribute // of the policy, or its bundle
}

// A placedWarning knows its offset in the file, to sort by.
type placedWarning struct {
	at   int64
	text string
}

// warn notes something about the place n that is no mistake.
func (c *compiler) warn(n *node, text string) {
	if n.path != "" {
		text = n.path + ": " + text
	}
	c.warned = append(c.warned, placedWarning{n.at, text})
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

// buckets is how many of them a request under the rule is charged in, at most.
func (d *draft) buckets() (n int) {
	for i := range d.Limits {
		n += max(d.Limits[i].Shards, 1)
	}
	return n
}

// charges checks how many buckets one request could be charged in.
func (c *compiler) charges() {
	bound, counted, hint := MaxMatches, "", "make the rules tiers of one group"
	if slices.ContainsFunc(c.drafts, func(d *draft) bool { return d.buckets() > len(d.Limits) }) {
		bound, counted, hint = maxShardMatches, ", each shard counted", "use fewer shards, or make the rules tiers of one group"
	}
	most, total := map[string]int{}, 0
	for _, d := range c.drafts {
		kind := d.group
		if d.Shadow {
			kind += " shadow"
		}
		if n := d.buckets(); n > most[kind] {
			total, most[kind] = total+n-most[kind], n
			if total > bound {
				c.absent(d.at, fmt.Sprintf("a request could fall under more than %d limits at once%s", bound, counted), hint)
				return
			}
		}
	}
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
			l.prefix = keyPrefix(l.Name)
			if a := l.Approximation; a != nil {
				c.warn(d.at, fmt.Sprintf("limit %q: the rate is lowered by %.2g of itself: the exact one does not fit", l.Name, a.RelativeError))
			}
		}
		m.rules = append(m.rules, d.Rule)
	}
	m.groups = len(groups)
	for _, a := range m.attributes {
		if a.Source == Custom {
			c.warned = append(c.warned, placedWarning{text: fmt.Sprintf("only a program that embeds mete can supply the attribute %v", a)})
		}
	}
	slices.SortStableFunc(c.warned, func(a, b placedWarning) int { return int(a.at - b.at) })
	for _, w := range c.warned {
		m.warnings = append(m.warnings, w.text)
	}
	m.scratch.New = func() any { return newScratch(m) }
	return m
}

// reasonOf is the text of an error without the names of packages and of the
// sentinels it wraps.
func reasonOf(err error) string {
	s := err.Error()
	for _, sentinel := range []error{bucket.ErrLimit, bucket.ErrRate, bucket.ErrTokens, bucket.ErrDuration} {
		s = strings.TrimPrefix(s, sentinel.Error()+": ")
	}
	return s
}
