// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"

	"github.com/metehq/mete/bucket"
)

// MaxMatches bounds the limits one request can fall under. A policy that could
// exceed it is refused.
const MaxMatches = 64

// A Match is one limit a request falls under.
type Match struct {
	Rule  *Rule
	Limit *Limit
	Key   string        // of the bucket: injective, prefixed by rule and limit
	Cost  bucket.Tokens // > 0
}

// A fact is what a request says about one attribute.
type fact struct {
	asked   bool
	present bool // addresses that cannot be read are not
	value   string
	addr    netip.Addr // of [IP]
}

// A tier says what the earlier rules of a group took.
type tier uint8

const (
	untaken tier = iota
	takenShadow
	taken
)

// A scratch is the memory of one call of [Matcher.Match].
type scratch struct {
	facts []fact // by slot
	asked []int  // slots of the facts that were asked for
	tiers []tier // by group
	key   []byte
}

func newScratch(m *Matcher) *scratch {
	n := len(m.attributes)
	return &scratch{
		facts: make([]fact, n), asked: make([]int, 0, n), tiers: make([]tier, m.groups),
		key: make([]byte, 0, 2*MaxKeyBytes),
	}
}

// forget makes s ready for the next request, and lets go of this one's values.
func (s *scratch) forget() {
	for _, slot := range s.asked {
		s.facts[slot] = fact{}
	}
	s.asked = s.asked[:0]
	clear(s.tiers)
}

// Match appends to dst the limits that attrs fall under, in the order of the
// rules. A cost above 0 is used in place of the rules' own. Nil attrs have no
// attributes. It looks an attribute up once at most, and only where a rule
// depends on it.
//
// missing is the rule that denies the request for lack of an attribute
// (on_missing: deny), nil for none. Where it is not nil nothing should be
// charged.
func (m *Matcher) Match(dst []Match, attrs Attributes, cost bucket.Tokens) (matches []Match, missing *Rule) {
	s := m.scratch.Get().(*scratch)
	for _, r := range m.rules {
		tier := &s.tiers[r.group]
		if *tier == taken || *tier == takenShadow && r.Shadow || !m.applies(s, r, attrs) {
			continue
		}
		complete := m.complete(s, r, attrs)
		if !complete && r.onMissing == missingSkip {
			continue
		}
		if *tier = takenShadow; !r.Shadow {
			*tier = taken
		}
		if !complete && r.onMissing == missingDeny {
			if missing == nil && !r.Shadow {
				missing = r
			}
			continue
		}
		dst = m.charge(dst, s, r, attrs, cost)
	}
	s.forget()
	m.scratch.Put(s)
	return dst, missing
}

// charge appends the limits of r, which applies and whose key is in s.
func (m *Matcher) charge(dst []Match, s *scratch, r *Rule, attrs Attributes, cost bucket.Tokens) []Match {
	key := s.key[:0]
	if r.slotBy != nil {
		key = m.keyer.appendTag(key, r.slotBy, &s.facts[r.slotBy.slot])
	}
	tag := len(key)
	for i := range r.keys {
		key = m.keyer.appendComponent(key, &r.keys[i], &s.facts[r.keys[i].slot])
	}
	for i := range r.Limits {
		l := &r.Limits[i]
		match := Match{Rule: r, Limit: l, Key: l.prefix, Cost: cost}
		if len(key) > 0 { // behind the components, to make them only once
			whole := append(append(key, key[:tag]...), l.prefix...)
			match.Key = string(append(whole, key[tag:]...)[len(key):])
		}
		if cost <= 0 {
			match.Cost = l.cost.fallback
			if l.cost.variable {
				f := m.fact(s, l.cost.slot, attrs)
				match.Cost = l.cost.of(f.value, f.present)
			}
		}
		dst = append(dst, match)
	}
	return dst
}

// applies reports whether all clauses of r hold.
func (m *Matcher) applies(s *scratch, r *Rule, attrs Attributes) bool {
	for i := range r.clauses {
		c := &r.clauses[i]
		if !c.holds(m.fact(s, c.slot, attrs)) {
			return false
		}
	}
	return true
}

// complete reports whether the request has every attribute of r's key. It looks
// all of them up.
func (m *Matcher) complete(s *scratch, r *Rule, attrs Attributes) bool {
	all := true
	for i := range r.keys {
		all = m.fact(s, r.keys[i].slot, attrs).present && all
	}
	return all
}

// fact returns what the request says about the attribute in slot.
func (m *Matcher) fact(s *scratch, slot int, attrs Attributes) *fact {
	f := &s.facts[slot]
	if f.asked {
		return f
	}
	f.asked = true
	s.asked = append(s.asked, slot)
	if attrs == nil {
		return f
	}
	a := m.attributes[slot]
	if f.value, f.present = attrs.Lookup(a); !f.present {
		f.value = ""
		return f
	}
	if a.Source == IP {
		addr, err := netip.ParseAddr(f.value)
		if f.addr = addr.Unmap().WithZone(""); err != nil {
			f.value, f.present = "", false
		}
	}
	return f
}
