// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy/internal/space"
)

// Reachability: the requests of a rule form a box with one side, a set of values, per constrained attribute. A
// later tier can never match if the boxes of earlier tiers cover its box. The check treats attributes as
// independent, so a reported rule truly never matches. A rule that never matches because of the meaning of its
// attributes is not reported.

// Bounds on the check. If a bound is exceeded, the rule counts as reachable.
const (
	// maxPieces bounds the pieces that earlier rules cut a rule's box into.
	maxPieces = 64

	// maxLooks bounds, per file, the comparisons to find one earlier rule that covers a rule, and maxCuts the
	// comparisons to find several. The unit is [space.Box.Weight]. Only policies with thousands of overlapping
	// rules that no attribute distinguishes reach these bounds.
	maxLooks, maxCuts = 1 << 23, 1 << 21
)

func newSpace(m *Matcher) *space.Space {
	return space.New(func(slot int) space.Attribute {
		a := m.attributes[slot]
		return space.Attribute{Name: a.text, Addresses: a.Source == SourceIP, Secret: a.IsSecret(), Plain: plainValues[a.Source]}
	})
}

// allValues returns the set of all values of a, including absence.
func allValues(a Attribute) space.Set { return space.Everything(a.Source == SourceIP) }

// narrow intersects d's box with the set of a clause or a key. It reports a rule that contradicts itself, once.
func (c *compiler) narrow(d *draft, at *parse.Node, slot int, s space.Set) bool {
	both := c.space.Side(d.takes, slot).And(s)
	if both.Empty() {
		a := c.matcher.attributes[slot]
		reason, hint := "no value of %v satisfies its match and limit_keys", "use on_missing: empty to accept requests without it"
		if slices.ContainsFunc(c.selector, func(s selection) bool { return s.slot == slot }) {
			reason, hint = "no value of %v satisfies both its match and the selector of its policy", "widen the selector, or move the rule into a policy without it"
		}
		c.AddAt(at, fmt.Sprintf("the rule can never match: "+reason, a), hint)
		return false
	}
	d.takes = d.takes.With(slot, both)
	return true
}

// reportUnreachable reports the rules that earlier rules of their group cover.
func (c *compiler) reportUnreachable() {
	groups := map[string][]*draft{}
	var names []string
	for _, d := range c.drafts {
		if d.group == "" {
			continue
		}
		if groups[d.group] == nil {
			names = append(names, d.group)
		}
		groups[d.group] = append(groups[d.group], d)
	}
	for _, name := range names {
		c.reportUnreachableIn(groups[name])
	}
}

func (c *compiler) reportUnreachableIn(group []*draft) {
	boxes := make([]space.Box, len(group))
	for i, d := range group {
		boxes[i] = d.takes
	}
	near, never := space.NewIndex(boxes), make([]bool, len(group))
	earlier := func(numbers []int32, before int) iter.Seq[*draft] {
		return func(yield func(*draft) bool) {
			for _, i := range numbers {
				e := group[i]
				if int(i) >= before || !never[i] && takesAll(e.keyMode(), group[before].keyMode()) && !yield(e) {
					return
				}
			}
		}
	}
	for i, d := range group {
		by := c.findCover(d, earlier(near.Around(i), i))
		if by == nil {
			by = c.findJointCover(d, earlier(near.Beside(i), i))
		}
		if never[i] = by != nil; by != nil {
			c.AddAt(d.at, c.describeCover(d, by), "move it before the other rule, narrow the other rule's match, or give it its own group so that both apply")
		}
	}
}

// takesAll reports whether an earlier tier takes every request that it matches from a later tier. A tier in shadow
// takes none from an enforced tier. Two partially enforced tiers have different keys, because each hashes them with
// its own name.
func takesAll(earlier, later Mode) bool {
	switch {
	case earlier == ModeEnforce, later == ModeOff:
		return true
	case later == ModeShadow:
		return earlier <= ModeShadow
	}
	return false
}

// keyMode returns the mode of d for its keys. A rule without keys has one bucket, so a partial mode is either
// enforced or in shadow.
func (d *draft) keyMode() Mode {
	switch {
	case !d.Mode.IsPartial() || len(d.keys) > 0:
		return d.Mode
	case d.Mode.exempts(spreadKey(d.Name, nil)):
		return ModeShadow
	}
	return ModeEnforce
}

// findCover returns the first earlier rule that covers d, or nil.
func (c *compiler) findCover(d *draft, earlier iter.Seq[*draft]) []*draft {
	for e := range earlier {
		if c.looks += e.takes.Weight(); c.looks > maxLooks {
			return nil
		}
		if c.space.Within(d.takes, e.takes) {
			return []*draft{e}
		}
	}
	return nil
}

// findJointCover returns earlier rules that together cover d, or nil.
func (c *compiler) findJointCover(d *draft, earlier iter.Seq[*draft]) []*draft {
	pieces := []space.Box{d.takes}
	var by []*draft
	for e := range earlier {
		if c.cuts += e.takes.Weight() * len(pieces); c.cuts > maxCuts {
			return nil
		}
		if c.space.Apart(d.takes, e.takes) {
			continue
		}
		var left []space.Box
		took := false
		for _, p := range pieces {
			if c.space.Apart(p, e.takes) {
				left = append(left, p)
				continue
			}
			left, took = c.space.Cut(left, p, e.takes), true
		}
		if pieces = left; took {
			by = append(by, e)
		}
		switch {
		case len(pieces) == 0:
			return by
		case len(pieces) > maxPieces:
			return nil
		}
	}
	return nil
}

// describeCover names the rules that cover d, and gives one example request.
func (c *compiler) describeCover(d *draft, by []*draft) string {
	var names []string
	sides := slices.Clone(d.takes)
	for _, e := range by {
		names = append(names, e.quotedName())
		for _, s := range e.takes {
			if !sides.Restricts(s.Slot) {
				sides = sides.With(s.Slot, c.space.Everything(s.Slot))
			}
		}
	}
	example := c.space.Facts(sides)
	if len(names) == 1 {
		return fmt.Sprintf("rule %s can never match: rule %s matches all its requests first, for example %s", d.quotedName(), names[0], example)
	}
	return fmt.Sprintf("rule %s can never match: rules %s together match all its requests first, for example %s",
		d.quotedName(), strings.Join(names, " and "), example)
}

// quotedName returns the name of d for messages, or its path if the name is missing or taken.
func (d *draft) quotedName() string {
	if d.Name == "" {
		return d.at.Path
	}
	return fmt.Sprintf("%q", d.Name)
}
