// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/policy/internal/parse"
)

// Reachability: a rule takes the requests whose attributes each lie in a set,
// so it is a box with one side for every attribute it constrains. A later tier
// can never match if the boxes of the earlier tiers cover its own. Attributes
// are taken as independent of each other, so a rule that is reported can truly
// never match; one that only the meaning of its attributes rules out is not
// reported.

// A box is the sides that are not [everything], by slot in ascending order.
type box []side

type side struct {
	slot int
	set  set
}

// What the check may cost. Beyond it gives up and takes rules for reachable.
const (
	// maxPieces bounds the pieces a rule's box is cut into by earlier rules.
	maxPieces = 64

	// maxLooks and maxCuts bound, for a whole file, how much earlier rules are
	// compared with later ones: to find one that takes all of it, and to find
	// several that do. A comparison counts as [box.weight] says. Policies of
	// thousands of rules that overlap in ways that no attribute tells apart come
	// there, and no others.
	maxLooks, maxCuts = 1 << 23, 1 << 21
)

// side returns what b allows in slot.
func (c *compiler) side(b box, slot int) set {
	if i, ok := b.find(slot); ok {
		return b[i].set
	}
	for len(c.universe) <= slot {
		c.universe = append(c.universe, everything(c.matcher.attributes[len(c.universe)]))
	}
	return c.universe[slot]
}

func (b box) find(slot int) (int, bool) {
	return slices.BinarySearchFunc(b, slot, func(s side, slot int) int { return s.slot - slot })
}

// weight is what it costs to compare b with another box: 1 if it is small.
func (b box) weight() int {
	cuts := 0
	for _, s := range b {
		cuts += len(s.set.cuts)
	}
	return 1 + cuts/16
}

// with returns b with another side.
func (b box) with(slot int, s set) box {
	i, ok := b.find(slot)
	b = slices.Clone(b)
	if !ok {
		b = slices.Insert(b, i, side{})
	}
	b[i] = side{slot, s}
	return b
}

// apart reports whether no request is in both b and e.
func (c *compiler) apart(b, e box) bool {
	return slices.ContainsFunc(e, func(s side) bool { return !c.side(b, s.slot).meets(s.set) })
}

// within reports whether all of b is in e.
func (c *compiler) within(b, e box) bool {
	return !slices.ContainsFunc(e, func(s side) bool { return !c.side(b, s.slot).within(s.set) })
}

// cut appends to left what is left of b without e, which it meets, as boxes
// that are apart.
func (c *compiler) cut(left []box, b, e box) []box {
	for _, s := range e {
		have := c.side(b, s.slot)
		if outside := have.not(s.set); !outside.empty() {
			left = append(left, b.with(s.slot, outside))
		}
		b = b.with(s.slot, have.and(s.set))
	}
	return left
}

// narrow cuts d's box to what a clause or a key lets in. It reports a rule that
// contradicts itself, once.
func (c *compiler) narrow(d *draft, at *parse.Node, slot int, s set) bool {
	both := c.side(d.takes, slot).and(s)
	if both.empty() {
		a := c.matcher.attributes[slot]
		reason, hint := "no value of %v satisfies its match and limit_keys", "on_missing: empty lets requests in that lack it"
		if slices.ContainsFunc(c.selector, func(s selection) bool { return s.slot == slot }) {
			reason, hint = "no value of %v satisfies both its match and the selector of its policy", "widen the selector, or move the rule into a policy without it"
		}
		c.Absent(at, fmt.Sprintf("the rule can never match: "+reason, a), hint)
		return false
	}
	d.takes = d.takes.with(slot, both)
	return true
}

// unreachable reports the rules that earlier ones of their group cover.
func (c *compiler) unreachable() {
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
		c.unreachableIn(groups[name])
	}
}

// unreachableIn reports those of one group.
func (c *compiler) unreachableIn(group []*draft) {
	boxes := make([]box, len(group))
	for i, d := range group {
		boxes[i] = d.takes
	}
	near, never := newOverlap(boxes), make([]bool, len(group))
	earlier := func(numbers []int32, before int) iter.Seq[*draft] {
		return func(yield func(*draft) bool) {
			for _, i := range numbers {
				e := group[i]
				if int(i) >= before || !never[i] && takesAll(e.modeOfKeys(), group[before].modeOfKeys()) && !yield(e) {
					return
				}
			}
		}
	}
	for i, d := range group {
		by := c.coverAlone(d, earlier(near.around(i), i))
		if by == nil {
			by = c.cover(d, earlier(near.beside(i), i))
		}
		if never[i] = by != nil; by != nil {
			c.Absent(d.at, c.witness(d, by), "put it before the other, narrow the other's match, or give it a group of its own so that both apply")
		}
	}
}

// takesAll reports whether an earlier tier takes every request of its match from a
// later one. A tier in shadow takes none from one in force. Two tiers that are in
// force for shares have different keys: each hashes them with its own name.
func takesAll(earlier, later Mode) bool {
	switch {
	case earlier == Enforce, later == Off:
		return true
	case later == Shadow:
		return earlier <= Shadow
	}
	return false
}

// modeOfKeys is the mode of d for its keys. A rule without keys has one bucket: a share
// of one is all of it or nothing, and which of the two is known here.
func (d *draft) modeOfKeys() Mode {
	switch {
	case !d.Mode.Partial() || len(d.keys) > 0:
		return d.Mode
	case d.Mode.spares(spread(d.Name, nil)):
		return Shadow
	}
	return Enforce
}

// coverAlone returns the first earlier rule that takes all that d would, nil if
// none does.
func (c *compiler) coverAlone(d *draft, earlier iter.Seq[*draft]) []*draft {
	for e := range earlier {
		if c.looks += e.takes.weight(); c.looks > maxLooks {
			return nil
		}
		if c.within(d.takes, e.takes) {
			return []*draft{e}
		}
	}
	return nil
}

// cover returns earlier rules that together take all that d would, nil if they
// do not.
func (c *compiler) cover(d *draft, earlier iter.Seq[*draft]) []*draft {
	pieces := []box{d.takes}
	var by []*draft
	for e := range earlier {
		if c.cuts += e.takes.weight() * len(pieces); c.cuts > maxCuts {
			return nil
		}
		if c.apart(d.takes, e.takes) {
			continue
		}
		var left []box
		took := false
		for _, p := range pieces {
			if c.apart(p, e.takes) {
				left = append(left, p)
				continue
			}
			left, took = c.cut(left, p, e.takes), true
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

// witness says which rules take all that d would, and one request they take.
func (c *compiler) witness(d *draft, by []*draft) string {
	var names []string
	sides := slices.Clone(d.takes)
	for _, e := range by {
		names = append(names, e.quoted())
		for _, s := range e.takes {
			if _, ok := sides.find(s.slot); !ok {
				sides = sides.with(s.slot, everything(c.matcher.attributes[s.slot]))
			}
		}
	}
	example := c.facts(sides)
	if len(names) == 1 {
		return fmt.Sprintf("rule %s can never match: rule %s takes every request it would, for example %s", d.quoted(), names[0], example)
	}
	return fmt.Sprintf("rule %s can never match: rules %s together take every request it would, for example %s",
		d.quoted(), strings.Join(names, " and "), example)
}

// facts are those of one request in b, for messages.
func (c *compiler) facts(b box) string {
	var facts []string
	for _, s := range b {
		a := c.matcher.attributes[s.slot]
		value, ok := s.set.sample(a)
		head, rest := parse.Cut(value)
		if !printable(head) {
			head = strconv.QuoteToASCII(head)
		}
		if any, _ := everything(a).sample(a); secret(a) && value != any {
			head, rest = "…", "" // mistakes are logged, and secrets are not
		}
		if fact := a.String() + "=" + head + rest; ok {
			facts = append(facts, fact)
		} else {
			facts = append(facts, "no "+a.String())
		}
	}
	if len(facts) == 0 {
		return "any"
	}
	return strings.Join(facts, " ")
}

// quoted is the name of d in a message: its place where the name is missing or taken.
func (d *draft) quoted() string {
	if d.Name == "" {
		return d.at.Path
	}
	return fmt.Sprintf("%q", d.Name)
}
