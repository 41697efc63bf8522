// SPDX-License-Identifier: Apache-2.0

// Package space computes with sets of requests. A [Set] has values of one attribute. A [Box] has one set for every
// attribute that a rule restricts. Slots number the attributes, as in the matcher.
package space

import (
	"net/netip"
	"slices"
	"strings"
)

// A Set is a set of values of one attribute, possibly including absence.
//
// Values are strings in byte order. Most sets are unions of intervals: they contain v if the number of cuts ≤ v is
// odd. One string s is the interval [s, s+"\x00"). A prefix p is the interval from p to the first string after all
// strings with that prefix. Addresses are strings of one length per family, so a network is an interval, too. Terms
// add the values of suffixes and templates, which are no intervals.
type Set struct {
	missing bool
	cuts    []string // strictly ascending
	terms   []term   // with further values

	// vague reports that the exact set would have more than maxTerms terms. The set then has values that the exact
	// set lacks, but all its values. It covers no other set.
	vague bool
}

// maxTerms bounds the terms of the result of an operation.
const maxTerms = 4096

// Absent returns the set of absence alone.
func Absent() Set { return Set{missing: true} }

// Everything returns the set of all values of an attribute, including absence. addresses tells whether the values
// are addresses.
func Everything(addresses bool) Set {
	if !addresses {
		return Set{missing: true, cuts: []string{""}}
	}
	first4, first6 := netip.AddrFrom4([4]byte{}), netip.IPv6Unspecified()
	return Set{missing: true, cuts: []string{addressText(first4), "5", addressText(first6), "7"}}
}

// addressText orders addresses: IPv4 before IPv6, each by number.
func addressText(a netip.Addr) string {
	if a.Is4() {
		return "4" + string(a.AsSlice())
	}
	return "6" + string(a.AsSlice())
}

// One returns the set of one value.
func One(s string) Set { return Set{cuts: []string{s, s + "\x00"}} }

// WithPrefix returns the set of values with the prefix p. p must be UTF-8, because the byte 0xff has no successor.
func WithPrefix(p string) Set {
	if p == "" {
		return Set{cuts: []string{""}}
	}
	last := len(p) - 1
	return Set{cuts: []string{p, p[:last] + string([]byte{p[last] + 1})}}
}

// WithShape returns the set of values that have a shape.
func WithShape(s *Shape) Set { return newTerms(WithPrefix(s.prefix()).cuts, []*Shape{s}, nil) }

// Network returns the set of the addresses of p.
func Network(p netip.Prefix) Set {
	first := p.Masked().Addr()
	last := first.AsSlice()
	for i := p.Bits(); i < first.BitLen(); i++ {
		last[i/8] |= 0x80 >> (i % 8)
	}
	addr, _ := netip.AddrFromSlice(last)
	after := addr.Next()
	switch {
	case after.IsValid():
		return Set{cuts: []string{addressText(first), addressText(after)}}
	case first.Is4():
		return Set{cuts: []string{addressText(first), "5"}}
	}
	return Set{cuts: []string{addressText(first), "7"}}
}

// HasAbsence reports whether absence is in s.
func (s Set) HasAbsence() bool { return s.missing }

// Present returns s without absence.
func (s Set) Present() Set {
	s.missing = false
	return s
}

// Union returns the union of one or more sets. It merges them in pairs, so that long lists stay cheap.
func Union(sets []Set) Set {
	for len(sets) > 1 {
		half := sets[:0]
		for pair := range slices.Chunk(sets, 2) {
			s := pair[0]
			if len(pair) == 2 {
				s = s.Or(pair[1])
			}
			half = append(half, s)
		}
		sets = half
	}
	return sets[0]
}

// combine returns the values for which op holds, given their membership in the intervals of s and t.
// op(false, false) must be false.
func (s Set) combine(t Set, op func(inS, inT bool) bool) Set {
	out := Set{missing: op(s.missing, t.missing)}
	i, j, in := 0, 0, false
	for i < len(s.cuts) || j < len(t.cuts) {
		at := ""
		if j == len(t.cuts) || i < len(s.cuts) && s.cuts[i] < t.cuts[j] {
			at = s.cuts[i]
		} else {
			at = t.cuts[j]
		}
		if i < len(s.cuts) && s.cuts[i] == at {
			i++
		}
		if j < len(t.cuts) && t.cuts[j] == at {
			j++
		}
		if now := op(i%2 == 1, j%2 == 1); now != in {
			out.cuts, in = append(out.cuts, at), now
		}
	}
	return out
}

func inAny(a, b bool) bool   { return a || b }
func inBoth(a, b bool) bool  { return a && b }
func inFirst(a, b bool) bool { return a && !b } // the first

// Or returns the union of s and t.
func (s Set) Or(t Set) Set {
	out := s.combine(t, inAny)
	out.vague = s.vague || t.vague
	out.terms = slices.Clone(s.terms)
	for i := range t.terms {
		if !slices.ContainsFunc(s.terms, func(u term) bool { return u.equal(&t.terms[i]) }) {
			out.terms = append(out.terms, t.terms[i])
		}
	}
	return out
}

// And returns the intersection of s and t.
func (s Set) And(t Set) Set {
	out := s.combine(t, inBoth)
	out.vague = s.vague || t.vague
	if len(s.terms)+len(t.terms) == 0 {
		return out
	}
	add := func(more Set) { out = out.Or(more) }
	for i := range s.terms {
		a := &s.terms[i]
		add(a.intersect(t.cuts))
		for j := range t.terms {
			b := &t.terms[j]
			in, not := a.in, a.out
			for _, shape := range b.in {
				in = withShape(in, shape)
			}
			for _, shape := range b.out {
				not = withShape(not, shape)
			}
			add(newTerms(Set{cuts: a.cuts}.combine(Set{cuts: b.cuts}, inBoth).cuts, in, not))
		}
		if len(out.terms) > maxTerms {
			s.vague = true
			return s
		}
	}
	for j := range t.terms {
		add(t.terms[j].intersect(s.cuts))
	}
	return out
}

// intersect returns the values of t in an interval set.
func (t *term) intersect(cuts []string) Set {
	if len(cuts) == 0 {
		return Set{}
	}
	return newTerms(Set{cuts: t.cuts}.combine(Set{cuts: cuts}, inBoth).cuts, t.in, t.out)
}

// Not returns s without t.
func (s Set) Not(t Set) Set {
	if t.vague {
		s.vague = true
		return s
	}
	out := s.combine(t, inFirst)
	out.vague = s.vague
	if len(s.terms)+len(t.terms) == 0 {
		return out
	}
	for i := range s.terms {
		a := &s.terms[i]
		out = out.Or(newTerms(Set{cuts: a.cuts}.combine(t, inFirst).cuts, a.in, a.out))
	}
	for j := range t.terms {
		if out = out.subtract(&t.terms[j]); len(out.terms) > maxTerms {
			s.vague = true
			return s
		}
	}
	return out
}

// subtract returns s without the values of t.
func (s Set) subtract(t *term) Set {
	of := Set{cuts: t.cuts}
	out := Set{missing: s.missing, vague: s.vague, cuts: Set{cuts: s.cuts}.combine(of, inFirst).cuts}
	cut := func(cuts []string, in, not []*Shape) {
		if cuts = (Set{cuts: cuts}).combine(of, inBoth).cuts; len(cuts) == 0 {
			return
		}
		for _, shape := range t.in {
			out = out.Or(newTerms(cuts, in, withShape(not, shape)))
		}
		for _, shape := range t.out {
			out = out.Or(newTerms(cuts, withShape(in, shape), not))
		}
	}
	cut(s.cuts, nil, nil)
	for i := range s.terms {
		a := &s.terms[i]
		out = out.Or(newTerms(Set{cuts: a.cuts}.combine(of, inFirst).cuts, a.in, a.out))
		cut(a.cuts, a.in, a.out)
	}
	return out
}

// anyValue reports whether op holds for any value, given its membership in the intervals of s and t.
func (s Set) anyValue(t Set, op func(inS, inT bool) bool) bool {
	if op(s.missing, t.missing) {
		return true
	}
	i, j := 0, 0
	for i < len(s.cuts) || j < len(t.cuts) {
		order := -1
		if i == len(s.cuts) {
			order = 1
		} else if j < len(t.cuts) {
			order = strings.Compare(s.cuts[i], t.cuts[j])
		}
		if order <= 0 {
			i++
		}
		if order >= 0 {
			j++
		}
		if op(i%2 == 1, j%2 == 1) {
			return true
		}
	}
	return false
}

// Meets reports whether s and t have a value in common.
func (s Set) Meets(t Set) bool {
	return s.anyValue(t, inBoth) || len(s.terms)+len(t.terms) > 0 && !s.And(t).Empty()
}

// Within reports whether t has all values of s.
func (s Set) Within(t Set) bool {
	if len(s.terms)+len(t.terms) == 0 && !t.vague {
		return !s.anyValue(t, inFirst)
	}
	return !t.vague && s.Not(t).Empty()
}

// Empty reports whether s has no values and no absence.
func (s Set) Empty() bool { return !s.missing && len(s.cuts)+len(s.terms) == 0 }

// hull returns intervals that contain all values of s.
func (s Set) hull() []string {
	out := Set{cuts: s.cuts}
	for i := range s.terms {
		out = out.combine(Set{cuts: s.terms[i].cuts}, inAny)
	}
	return out.cuts
}

// Has reports whether the value v is in s.
func (s Set) Has(v string) bool {
	return countUpTo(s.cuts, v)%2 == 1 || slices.ContainsFunc(s.terms, func(t term) bool { return t.has(v) })
}

// firstOrSample returns some value of s.
func (s Set) firstOrSample() (value string, ok bool) {
	if len(s.cuts) > 0 {
		return s.cuts[0], true
	}
	return s.sampleTerms()
}

func (s Set) sampleTerms() (value string, ok bool) {
	for i := range s.terms {
		if value, ok := s.terms[i].sample(); ok {
			return value, true
		}
	}
	return "", false
}

// Sample returns a readable value in s, which must not be empty. ok is false if s contains only absence.
func (s Set) Sample(addresses bool) (value string, ok bool) {
	if len(s.cuts) == 0 {
		return s.sampleTerms()
	}
	if !addresses {
		for _, readable := range []string{s.cuts[0], s.cuts[0] + "x", "x", "/", "GET"} {
			if readable != "" && s.Has(readable) && !strings.ContainsRune(readable, 0) {
				return readable, true
			}
		}
		return s.cuts[0], true
	}
	for _, readable := range []string{"192.0.2.1", "2001:db8::1"} {
		if s.Has(addressText(netip.MustParseAddr(readable))) {
			return readable, true
		}
	}
	addr, _ := netip.AddrFromSlice([]byte(s.cuts[0][1:]))
	return addr.String(), true
}
