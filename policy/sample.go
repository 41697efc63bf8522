// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

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
	b, ok := m.boxOf(in, r)
	if !ok {
		return nil, false
	}
	pieces, seen := []space.Box{b}, 0
	for j, e := range m.rules {
		before := e.group == r.group && j < i || r.fallback && e.scope == r.scope && e != r
		if !before || e.Mode > r.Mode && r.Mode != ModeOff || e.Mode == ModeOff {
			continue
		}
		taken, ok := m.boxOf(in, e)
		if !ok {
			continue
		}
		if seen++; seen > maxSampleRules || len(pieces) > maxSamplePieces {
			return nil, false
		}
		var left []space.Box
		for _, p := range pieces {
			if in.Apart(p, taken) {
				left = append(left, p)
			} else {
				left = in.Cut(left, p, taken)
			}
		}
		// A partially enforced rule leaves some keys to later rules.
		if len(left) > 0 || !e.Mode.IsPartial() {
			pieces = left
		}
	}
	if len(pieces) == 0 {
		return nil, false
	}
	return m.newSample(in, r, pieces[0]), true
}

// boxOf returns the requests that r accepts, and reports whether there are any.
func (m *Matcher) boxOf(in *space.Space, r *Rule) (b space.Box, ok bool) {
	narrow := func(slot int, s space.Set) {
		s = in.Side(b, slot).And(s)
		ok = ok && !s.Empty()
		b = b.With(slot, s)
	}
	ok = true
	for i := range r.clauses {
		cl := &r.clauses[i]
		narrow(cl.slot, cl.pattern.toSet(m.attributes[cl.slot]))
	}
	if r.onMissing == inspect.MissingSkip {
		for i := range r.keys {
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
		if s.HasAbsence() && a.Source < SourceIP && !r.reads(slot) {
			continue // leave out optional attributes, unless all requests have them
		}
		if value, ok := in.Plain(slot, s); ok {
			request[a.text] = value
		}
	}
	return request
}

func (r *Rule) reads(slot int) bool {
	return slices.ContainsFunc(r.keys, func(k component) bool { return k.slot == slot })
}

// plainValues are typical values of attributes.
var plainValues = map[Source][]string{
	SourceCustom: {"example"}, SourceHeader: {"example"}, SourceQuery: {"example"}, SourceCookie: {"example"}, SourceJWT: {"example"},
	SourceMethod: {"GET", "POST", "PUT", "DELETE", "PATCH"}, SourcePath: {"/", "/example"}, SourceHost: {"example.com"},
}
