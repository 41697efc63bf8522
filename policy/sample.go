// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

// What a sample may cost to find: how many rules are looked at that go before, and how
// many pieces what is left of the rule may have.
const (
	maxSampleRules  = 1000
	maxSamplePieces = 64
)

// Sample returns a request that falls under the i'th rule and no earlier one of its
// group, made up of plain values. It is false where none is found: attributes are
// taken as independent of each other, overrides are left out, and of policies with
// many rules not all are looked at.
func (m *Matcher) Sample(i int) (Map, bool) {
	r := m.rules[i]
	c := &compiler{matcher: m}
	b, ok := c.boxOf(r)
	if !ok {
		return nil, false
	}
	pieces, seen := []box{b}, 0
	for j, e := range m.rules {
		before := e.group == r.group && j < i || r.fallback && e.scope == r.scope && e != r
		if !before || e.Mode > r.Mode && r.Mode != Off || e.Mode == Off {
			continue
		}
		taken, ok := c.boxOf(e)
		if !ok {
			continue
		}
		if seen++; seen > maxSampleRules || len(pieces) > maxSamplePieces {
			return nil, false
		}
		var left []box
		for _, p := range pieces {
			if c.apart(p, taken) {
				left = append(left, p)
			} else {
				left = c.cut(left, p, taken)
			}
		}
		// One that is in force for some of the keys leaves the others.
		if len(left) > 0 || !e.Mode.Partial() {
			pieces = left
		}
	}
	if len(pieces) == 0 {
		return nil, false
	}
	return m.sample(r, pieces[0]), true
}

// boxOf is what r lets in, and whether that is anything.
func (c *compiler) boxOf(r *Rule) (b box, ok bool) {
	narrow := func(slot int, s set) {
		s = c.side(b, slot).and(s)
		ok = ok && !s.empty()
		b = b.with(slot, s)
	}
	ok = true
	for i := range r.clauses {
		cl := &r.clauses[i]
		narrow(cl.slot, cl.pattern.set(c.matcher.attributes[cl.slot]))
	}
	if r.onMissing == missingSkip {
		for i := range r.keys {
			here := everything(c.matcher.attributes[r.keys[i].slot])
			here.missing = false
			narrow(r.keys[i].slot, here)
		}
	}
	return b, ok
}

// set is what p matches.
func (p *pattern) set(a Attribute) (s set) {
	for _, v := range p.exact {
		s = s.or(oneString(v))
	}
	for _, v := range p.prefixes {
		if v == "" {
			here := everything(a)
			here.missing = false
			s = s.or(here)
		} else {
			s = s.or(allWithPrefix(v))
		}
	}
	for _, n := range p.networks {
		s = s.or(network(n))
	}
	if p.negate {
		s = everything(a).not(s)
	}
	return s
}

// sample is a request in b, with all that the key of r is made of.
func (m *Matcher) sample(r *Rule, b box) Map {
	request := Map{}
	c := &compiler{matcher: m}
	slots := make([]int, 0, len(b)+len(r.keys))
	for _, s := range b {
		slots = append(slots, s.slot)
	}
	for i := range r.keys {
		if !slices.Contains(slots, r.keys[i].slot) {
			slots = append(slots, r.keys[i].slot)
		}
	}
	for _, slot := range slots {
		a, s := m.attributes[slot], c.side(b, slot)
		if s.missing && a.Source < IP && !r.reads(slot) {
			continue // what need not be there is left out, unless all requests have it
		}
		value, ok := plainSample(a, s)
		if ok {
			request[a.text] = value
		}
	}
	return request
}

// reads reports whether the key of r is made of the attribute in slot.
func (r *Rule) reads(slot int) bool {
	return slices.ContainsFunc(r.keys, func(k component) bool { return k.slot == slot })
}

// plainSample is a value in s that looks like one of a.
func plainSample(a Attribute, s set) (string, bool) {
	for _, plain := range plainValues[a.Source] {
		if s.has(plain) {
			return plain, true
		}
	}
	return s.sample(a)
}

// plainValues are what is likely to be seen of attributes.
var plainValues = map[Source][]string{
	Custom: {"example"}, Header: {"example"}, Query: {"example"}, Cookie: {"example"}, JWT: {"example"},
	Method: {"GET", "POST", "PUT", "DELETE", "PATCH"}, Path: {"/", "/example"}, Host: {"example.com"},
}
