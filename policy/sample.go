// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"github.com/metehq/mete/policy/internal/inspect"
	"github.com/metehq/mete/policy/internal/space"
)

// Bounds of the search for a sample: the number of earlier rules to compare, and the number of pieces of the rule's
// remaining box.
const (
	maxSampleRules  = 1000
	maxSamplePieces = 64
)

// Sample returns a plain request that matches the i'th rule and no earlier rule of its group. It returns false if
// it finds none. It treats attributes as independent, ignores overrides, and in large policies does not compare
// all rules.
func (m *Matcher) Sample(i int) (Map, bool) {
	r := m.rules[i]
	in := newSpace(m)
	pieces, seen := m.boxesOf(in, r), 0
	for j, e := range m.rules {
		before := e.group == r.group && j < i || r.fallback && e.scope == r.scope && e != r
		if !before || e.Mode > r.Mode && r.Mode != ModeOff || e.Mode == ModeOff {
			continue
		}
		left := pieces
		for _, taken := range m.boxesOf(in, e) {
			if seen++; seen > maxSampleRules || len(left) > maxSamplePieces {
				return nil, false
			}
			left = in.Subtract(left, taken)
		}
		// A partially enforced rule leaves some keys to later rules, and a rule with hours leaves times.
		if len(left) > 0 || !e.Mode.IsPartial() && e.active == nil {
			pieces = left
		}
	}
	if len(pieces) == 0 {
		return nil, false
	}
	return m.newSample(in, r, pieces[0]), true
}

// boxesOf returns the requests that each alternative of r accepts. It leaves out alternatives that accept none.
func (m *Matcher) boxesOf(in *space.Space, r *Rule) (boxes []space.Box) {
	for _, clauses := range r.alternatives {
		if b, ok := m.boxOf(in, r, clauses); ok {
			boxes = append(boxes, b)
		}
	}
	return boxes
}

func (m *Matcher) boxOf(in *space.Space, r *Rule, clauses []clause) (b space.Box, ok bool) {
	narrow := func(slot int, s space.Set) {
		s = in.Side(b, slot).And(s)
		ok = ok && !s.Empty()
		b = b.With(slot, s)
	}
	ok = true
	for i := range clauses {
		cl := &clauses[i]
		if a := m.attributes[cl.slot]; !a.IsCaptured() {
			narrow(cl.slot, cl.pattern.toSet(a))
		} else if slot, set, captured := captureSet(clauses, a, &cl.pattern); captured {
			narrow(slot, set)
		}
	}
	if r.onMissing == inspect.MissingSkip {
		for i := range r.keys {
			if m.attributes[r.keys[i].slot].IsCaptured() {
				continue
			}
			narrow(r.keys[i].slot, in.Everything(r.keys[i].slot).Present())
		}
	}
	return b, ok
}

func (p *pattern) toSet(a Attribute) space.Set {
	sets := []space.Set{{}}
	for _, v := range p.exact {
		sets = append(sets, space.One(v))
	}
	for _, v := range p.prefixes {
		if v == "" {
			sets = append(sets, allValues(a).Present())
		} else {
			sets = append(sets, space.WithPrefix(v))
		}
	}
	for _, v := range p.suffixes {
		sets = append(sets, space.WithShape(space.NewSuffix(v)))
	}
	for _, t := range p.templates {
		sets = append(sets, space.WithTemplate(t))
	}
	for _, n := range p.networks {
		sets = append(sets, space.Network(n))
	}
	s := space.Union(sets)
	if p.negate {
		s = allValues(a).Not(s)
	}
	return s
}

// newSample returns a request in b with all attributes of r's key.
func (m *Matcher) newSample(in *space.Space, r *Rule, b space.Box) Map {
	request := Map{}
	slots := make([]int, 0, len(b)+len(r.keys))
	for _, s := range b {
		slots = append(slots, s.Slot)
	}
	for i := range r.keys {
		if !slices.Contains(slots, r.keys[i].slot) {
			slots = append(slots, r.keys[i].slot)
		}
	}
	for _, slot := range slots {
		a, s := m.attributes[slot], in.Side(b, slot)
		if a.has {
			continue
		}
		if a.IsCaptured() || s.HasAbsence() && a.Source < SourceIP && !r.reads(slot) {
			continue // leave out optional attributes, unless all requests have them
		}
		if value, ok := in.Plain(slot, s); ok {
			request[a.text] = value
		}
	}
	for _, side := range b {
		if p := m.has[side.Slot]; p != nil && !side.Set.HasAbsence() {
			of := m.attributes[m.from[side.Slot]-1].text
			request[of] = strings.TrimSpace(request[of] + valueEnd + p.sampleValue())
		}
	}
	return request
}

func (r *Rule) reads(slot int) bool {
	return slices.ContainsFunc(r.keys, func(k component) bool { return k.slot == slot })
}

// plainValues returns typical values of an attribute.
func plainValues(a Attribute) []string {
	if a.has {
		return []string{hasTrue}
	}
	for _, d := range derived {
		if d.source == a.Source && d.name == a.Name {
			return []string{d.plain}
		}
	}
	return plainValuesOf[a.Source]
}

var plainValuesOf = map[Source][]string{
	SourceCustom: {"example"}, SourceHeader: {"example"}, SourceQuery: {"example"}, SourceCookie: {"example"}, SourceJWT: {"example"},
	SourceMethod: {"GET", "POST", "PUT", "DELETE", "PATCH"}, SourcePath: {"/", "/example"}, SourceHost: {"example.com"},
}
