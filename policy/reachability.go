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
		return space.Attribute{Name: a.text, Addresses: a.Source == SourceIP, Secret: a.IsSecret(), Plain: plainValues(a)}
	})
}

// allValues returns the set of all values of a, including absence.
func allValues(a Attribute) space.Set { return space.Everything(a.Source == SourceIP) }

// narrow intersects the requests of an alternative with the set of a clause or a key. It reports a rule that contradicts
// itself, once.
func (c *compiler) narrow(alt *alternative, at *parse.Node, slot int, s space.Set) bool {
	both := c.space.Side(alt.takes, slot).And(s)
	if both.Empty() {
		a := c.matcher.attributes[slot]
		reason, hint := "no value of %v satisfies its match and limit_keys", "use on_missing: empty to accept requests without it"
		if slices.ContainsFunc(c.selector, func(s selection) bool { return s.slot == slot }) {
			reason, hint = "no value of %v satisfies both its match and the selector of its policy", "widen the selector, or move the rule into a policy without it"
		}
		c.AddAt(at, fmt.Sprintf("the rule can never match: "+reason, a), hint)
		return false
	}
	alt.takes = alt.takes.With(slot, both)
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

// A claim is the requests of one alternative of a rule.
type claim struct {
	*draft
	number int // of the rule in its group
	box    space.Box
}

func (c *compiler) reportUnreachableIn(group []*draft) {
	var claims []claim
	var boxes []space.Box
	for i, d := range group {
		for _, b := range d.takes {
			claims, boxes = append(claims, claim{d, i, b}), append(boxes, b)
		}
	}
	near, never := space.NewIndex(boxes), make([]bool, len(group))
	earlier := func(numbers []int32, before *claim) iter.Seq[*claim] {
		return func(yield func(*claim) bool) {
			for _, i := range numbers {
				e := &claims[i]
				if e.number >= before.number || !never[e.number] && e.active == nil && takesAll(e.keyMode(), before.keyMode()) && !yield(e) {
					return
				}
			}
		}
	}
	at := 0
	for i, d := range group {
		var by []*claim
		covered := true
		for range d.takes {
			if covered {
				of := &claims[at]
				cover := c.findCover(of.box, earlier(near.Around(at), of))
				if cover == nil {
					cover = c.findJointCover(of.box, earlier(near.Beside(at), of))
				}
				covered, by = cover != nil, append(by, cover...)
			}
			at++
		}
		if never[i] = covered; covered {
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
	case d.Mode.exempts(spreadKey(d.limitBase(), nil)):
		return ModeShadow
	}
	return ModeEnforce
}

// findCover returns the first earlier claim that covers a box, or nil.
func (c *compiler) findCover(b space.Box, earlier iter.Seq[*claim]) []*claim {
	for e := range earlier {
		if c.looks += e.box.Weight(); c.looks > maxLooks {
			return nil
		}
		if c.space.Within(b, e.box) {
			return []*claim{e}
		}
	}
	return nil
}

// findJointCover returns earlier claims that together cover a box, or nil.
func (c *compiler) findJointCover(b space.Box, earlier iter.Seq[*claim]) []*claim {
	pieces := []space.Box{b}
	var by []*claim
	for e := range earlier {
		if c.cuts += e.box.Weight() * len(pieces); c.cuts > maxCuts {
			return nil
		}
		if c.space.Apart(b, e.box) {
			continue
		}
		var left []space.Box
		took := false
		for _, p := range pieces {
			if c.space.Apart(p, e.box) {
				left = append(left, p)
				continue
			}
			left, took = c.space.Cut(left, p, e.box), true
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
func (c *compiler) describeCover(d *draft, by []*claim) string {
	var names []string
	sides := slices.Clone(d.takes[0])
	for _, e := range by {
		if name := e.quotedName(); !slices.Contains(names, name) {
			names = append(names, name)
		}
		for _, s := range e.box {
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
