// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"slices"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/internal/space"
)

// Bounds of the search for moved rules and for examples. Above maxLooks, a rule in another order counts as moved
// without comparing its requests.
const (
	maxLooks  = 1 << 20
	maxPieces = 256
)

// precedes reports whether rule e takes precedence over rule r of the same policy. If so, e is an earlier tier of its
// group, or r is a fallback beside e.
func precedes(e, r *rule) bool {
	if e == r || e.Mode == policy.ModeOff || e.Mode == policy.ModeShadow && r.Mode == policy.ModeEnforce {
		return false // it takes nothing
	}
	return e.view.Group == r.view.Group && e.index < r.index || r.view.Fallback && e.view.Scope == r.view.Scope
}

// takesAll reports whether e, which precedes r, takes all its requests from r. A partially enforced rule takes only
// some of them.
func takesAll(e, r *rule) bool {
	return e.Mode == policy.ModeEnforce || e.Mode == policy.ModeShadow && r.Mode == policy.ModeShadow
}

// compareOrder compares an unchanged rule with the other unchanged rules. It has moved if one of them takes some of
// its requests in only one policy.
func (c *comparer) compareOrder(o, n *rule) []Difference {
	if c.near == nil {
		c.old.hashPredecessors()
		c.new.hashPredecessors()
		c.near = c.new.newIndex()
	}
	if o.set == n.set {
		return nil
	}
	d := Difference{Kind: KindRuleMoved, Rule: n.Name}
	var lost, gained []space.Box
	for _, i := range c.findBeside(n) {
		e := &c.new.rules[i]
		if !e.same || e.Mode == policy.ModeOff {
			continue
		}
		if c.looks > maxLooks && len(d.Before)+len(d.After) > 0 {
			break // it may have moved: one rule is enough
		}
		was, is := precedes(e.twin, o), precedes(e, n)
		switch {
		case was == is:
			continue
		case is:
			if pieces := c.sharedRequests(&c.old, o, e.twin); pieces != nil {
				d.After, lost = append(d.After, e.Name), append(lost, pieces...)
			}
		case !precedes(n, e): // otherwise e has moved, and is reported
			if pieces := c.sharedRequests(&c.new, n, e); pieces != nil {
				d.Before, gained = append(d.Before, e.Name), append(gained, pieces...)
			}
		}
	}
	if d.Before == nil && d.After == nil {
		return nil
	}
	d.Example = c.findExample(append(lost, gained...), o, n)
	return []Difference{d}
}

// sharedRequests returns the requests of rule r that rule e would take, too, or nil. If the search exceeds its
// bounds, it returns all requests of both.
func (c *comparer) sharedRequests(s *side, r, e *rule) []space.Box {
	if c.looks++; c.looks <= maxLooks && c.areApart(r.boxes, e.boxes) {
		return nil
	}
	both := c.intersect(r.boxes, e.boxes)
	if c.looks > maxLooks {
		return both
	}
	left, ok := c.subtract(s, r, both)
	if !ok {
		return both
	}
	return left
}

// subtract returns pieces without the requests that rules before r take. It returns false if the search exceeds its
// bounds.
func (c *comparer) subtract(s *side, r *rule, pieces []space.Box) (left []space.Box, ok bool) {
	for i := range s.rules {
		e := &s.rules[i]
		if len(pieces) == 0 {
			return nil, true
		}
		if !precedes(e, r) || !takesAll(e, r) {
			continue
		}
		if c.looks += len(pieces); c.looks > maxLooks || len(pieces) > maxPieces {
			return nil, false
		}
		for _, b := range e.boxes {
			pieces = c.space.Subtract(pieces, b)
		}
	}
	return pieces, true
}

// newIndex returns an index of the boxes of all alternatives, and sets the owner of each box.
func (s *side) newIndex() *space.Index {
	var boxes []space.Box
	for i := range s.rules {
		s.rules[i].first = len(boxes)
		for range s.rules[i].boxes {
			s.owners = append(s.owners, i)
		}
		boxes = append(boxes, s.rules[i].boxes...)
	}
	return space.NewIndex(boxes)
}

// findBeside returns the indexes of new rules that may overlap r, ascending and without duplicates.
func (c *comparer) findBeside(r *rule) (rules []int) {
	for at := range r.boxes {
		for _, i := range c.near.Beside(r.first + at) {
			rules = append(rules, c.new.owners[i])
		}
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

// hashPredecessors computes the set of each rule: the sum of the hashes of the unchanged rules before it. Equal
// sums mean equal sets, which avoids comparing all pairs of rules.
func (s *side) hashPredecessors() {
	type group struct {
		group int
		mode  policy.Mode // rules in shadow precede only rules in shadow
	}
	groups, scopes := map[group]uint64{}, map[group]uint64{}
	number := func(r *rule) uint64 { // equal in both policies
		if !r.same {
			return 0
		}
		return mix(r.Name)
	}
	for i := range s.rules {
		r := &s.rules[i]
		if r.Mode != policy.ModeOff {
			scopes[group{r.view.Scope, r.Mode}] += number(r)
		}
	}
	for i := range s.rules {
		r := &s.rules[i]
		r.set = 1
		in := groups
		at := r.view.Group
		if r.view.Fallback {
			in, at = scopes, r.view.Scope
		}
		for g, sum := range in {
			if g.group == at && (g.mode != policy.ModeShadow || r.Mode != policy.ModeEnforce) {
				r.set += sum
			}
		}
		if r.view.Fallback && r.Mode != policy.ModeOff {
			r.set -= number(r)
		}
		if r.Mode != policy.ModeOff {
			groups[group{r.view.Group, r.Mode}] += number(r)
		}
	}
}

// mix hashes a name (FNV-1a, then splitmix64).
func mix(name string) uint64 {
	x := uint64(14695981039346656037)
	for _, b := range []byte(name) {
		x = (x ^ uint64(b)) * 1099511628211
	}
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
