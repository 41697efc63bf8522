// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/internal/space"
)

// variants is the number of requests that are tried per piece. They have different keys, because a rule can be
// enforced for a share of its keys.
const variants = 32

func (c *comparer) newExample(s *side, r *rule) *Example {
	return c.findExample(c.region(s, r), r)
}

// region returns the requests of a rule that no earlier rule takes. If the search exceeds its bounds, it returns all
// requests that the rule matches.
func (c *comparer) region(s *side, r *rule) []space.Box {
	looks := c.looks
	defer func() { c.looks = looks }() // each example has its own bound
	c.looks = maxLooks - maxExampleLooks
	if pieces, ok := c.subtract(s, r, r.boxes); ok {
		return pieces
	}
	return r.boxes
}

const maxExampleLooks = 1 << 14

func (c *comparer) newExampleOfBoth(o, n *rule) *Example {
	was, is := c.region(&c.old, o), c.region(&c.new, n)
	var pieces []space.Box
	cut := func(from, without []space.Box) {
		for _, w := range without[:min(len(without), maxPieces)] {
			from = c.space.Subtract(from[:min(len(from), maxPieces)], w)
		}
		pieces = append(pieces, from...)
	}
	if !c.equalUnions(o.boxes, n.boxes) { // requests of only one of them show most
		cut(slices.Clone(was), is)
		cut(slices.Clone(is), was)
	}
	return c.findExample(slices.Concat(pieces, is, was), o, n)
}

// findExample returns a request in pieces, with the keys of rules, that the policies decide differently. Failing
// that, it returns any request in pieces, or nil if there are no pieces.
func (c *comparer) findExample(pieces []space.Box, rules ...*rule) *Example {
	var first *Example
	for _, p := range pieces[:min(len(pieces), maxPieces)] {
		for i := range variants {
			request := c.newRequest(p, i, rules)
			e := &Example{Request: request, Old: c.decide(&c.old, request), New: c.decide(&c.new, request)}
			if !e.Old.Equal(&e.New) {
				return e
			}
			if first == nil {
				first = e
			}
		}
	}
	return first
}

// newRequest returns the i'th request in a box. The first has every attribute of the rules' keys, the second has no
// optional attribute, and the others have different keys.
func (c *comparer) newRequest(b space.Box, i int, rules []*rule) policy.Map {
	keys := map[int]bool{}
	for _, r := range rules {
		for _, a := range r.LimitKeys {
			keys[c.slots[a.String()]] = true
		}
	}
	slots := map[int]bool{}
	for _, side := range b {
		slots[side.Slot] = true
	}
	for slot, source := range c.sources {
		// Requests over HTTP have an address, a method, a path and a host.
		slots[slot] = slots[slot] || i != 1 && (keys[slot] || source >= policy.SourceIP)
	}
	request := policy.Map{}
	for slot, wanted := range slots {
		if !wanted || c.captured[slot] {
			continue
		}
		set := c.space.Side(b, slot)
		if c.has[slot] != nil {
			continue
		}
		if set.HasAbsence() && c.sources[slot] < policy.SourceIP && (!keys[slot] || i == 1) {
			continue // most requests lack it
		}
		if i > 1 && c.sources[slot] < policy.SourceIP {
			if other := "example-" + strconv.Itoa(i); set.Has(other) {
				request[c.attributes[slot].Name] = other
				continue
			}
		}
		if value, ok := c.space.Plain(slot, set); ok {
			request[c.attributes[slot].Name] = value
		}
	}
	c.addValues(request, b)
	return request
}

// addValues adds the values to request that clauses with has want.
func (c *comparer) addValues(request policy.Map, b space.Box) {
	for _, side := range b {
		has := c.has[side.Slot]
		if has == nil || side.Set.HasAbsence() || b.Restricts(has.Of) {
			continue
		}
		name := c.attributes[has.Of].Name
		request[name] = strings.TrimSpace(request[name] + " " + has.Value)
	}
}

func (c *comparer) decide(s *side, request policy.Map) (d Decision) {
	d.Matches, d.Verdict = s.Match(nil, request, 0, c.now)
	return d
}

// Equal reports whether two decisions allow, deny and charge alike, by the same overrides. If several rules deny a
// request because it lacks an attribute, it does not matter which rule is named.
func (d *Decision) Equal(e *Decision) bool {
	if overrideID(d.Block) != overrideID(e.Block) || overrideID(d.Allow) != overrideID(e.Allow) || (d.Missing == nil) != (e.Missing == nil) || d.Why != e.Why {
		return false
	}
	if d.Denies() { // nothing is charged
		return true
	}
	return slices.EqualFunc(d.sortedMatches(), e.sortedMatches(), func(a, b policy.Match) bool {
		return a.Key == b.Key && a.Limit.Name == b.Limit.Name && a.Limit.Bucket == b.Limit.Bucket && a.Cost == b.Cost && a.Shadow == b.Shadow
	})
}

// sortedMatches returns the matches by key, because their order has no effect.
func (d *Decision) sortedMatches() []policy.Match {
	return slices.SortedFunc(slices.Values(d.Matches), func(a, b policy.Match) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
}

func overrideID(o *policy.Override) string {
	if o == nil {
		return ""
	}
	return o.ID
}
