// SPDX-License-Identifier: Apache-2.0

package space

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Box is the requests whose attributes each lie in a set: its sides, by slot in ascending
// order. An attribute without a side can be anything.
type Box []Side

// A Side is the values of the attribute in a slot.
type Side struct {
	Slot int
	Set  Set
}

// A Space knows the attributes of boxes. It is not safe for concurrent use.
type Space struct {
	attribute func(slot int) Attribute
	universe  []Set // by slot
}

// An Attribute is what boxes need to know of one.
type Attribute struct {
	Name      string
	Addresses bool // its values are addresses
	Secret    bool // its values are not shown

	// Plain are likely values, the likeliest first.
	Plain []string
}

// New returns a space whose attributes are described by the function. Their number may grow.
func New(attribute func(slot int) Attribute) *Space { return &Space{attribute: attribute} }

// Attribute returns the attribute in slot.
func (s *Space) Attribute(slot int) Attribute { return s.attribute(slot) }

// Plain returns a value in set that looks like one of the attribute in slot. It is false
// where absence is all that set has.
func (s *Space) Plain(slot int, set Set) (value string, ok bool) {
	a := s.attribute(slot)
	for _, plain := range a.Plain {
		if set.Has(plain) {
			return plain, true
		}
	}
	return set.Sample(a.Addresses)
}

// Everything is all that the attribute in slot can be.
func (s *Space) Everything(slot int) Set {
	for len(s.universe) <= slot {
		s.universe = append(s.universe, Everything(s.attribute(len(s.universe)).Addresses))
	}
	return s.universe[slot]
}

// Side returns the values that b allows in slot.
func (s *Space) Side(b Box, slot int) Set {
	if i, ok := b.find(slot); ok {
		return b[i].Set
	}
	return s.Everything(slot)
}

func (b Box) find(slot int) (int, bool) {
	return slices.BinarySearchFunc(b, slot, func(s Side, slot int) int { return s.Slot - slot })
}

// Restricts reports whether b has a side in slot.
func (b Box) Restricts(slot int) bool {
	_, ok := b.find(slot)
	return ok
}

// Weight is the cost of comparing b with another box: 1 for a small one.
func (b Box) Weight() int {
	cuts := 0
	for _, s := range b {
		cuts += len(s.Set.cuts)
	}
	return 1 + cuts/16
}

// With returns b with another side.
func (b Box) With(slot int, set Set) Box {
	i, ok := b.find(slot)
	b = slices.Clone(b)
	if !ok {
		b = slices.Insert(b, i, Side{})
	}
	b[i] = Side{slot, set}
	return b
}

// Apart reports whether no request is in both b and e.
func (s *Space) Apart(b, e Box) bool {
	return slices.ContainsFunc(e, func(side Side) bool { return !s.Side(b, side.Slot).Meets(side.Set) })
}

// And returns the requests that are in both b and e.
func (s *Space) And(b, e Box) Box {
	for _, side := range e {
		b = b.With(side.Slot, s.Side(b, side.Slot).And(side.Set))
	}
	return b
}

// Within reports whether all of b is in e.
func (s *Space) Within(b, e Box) bool {
	return !slices.ContainsFunc(e, func(side Side) bool { return !s.Side(b, side.Slot).Within(side.Set) })
}

// Cut appends to left the rest of b without e, which it meets, as boxes that are apart.
func (s *Space) Cut(left []Box, b, e Box) []Box {
	for _, side := range e {
		have := s.Side(b, side.Slot)
		if outside := have.Not(side.Set); !outside.Empty() {
			left = append(left, b.With(side.Slot, outside))
		}
		b = b.With(side.Slot, have.And(side.Set))
	}
	return left
}

// maxShownBytes is how much of a value messages show.
const maxShownBytes = 60

// Facts are the attributes of one request in b, for messages. Messages are logged, so that
// no secret is in them.
func (s *Space) Facts(b Box) string {
	var facts []string
	for _, side := range b {
		a := s.attribute(side.Slot)
		value, ok := side.Set.Sample(a.Addresses)
		if !ok {
			facts = append(facts, "no "+a.Name)
			continue
		}
		head, rest := value, ""
		if len(value) > maxShownBytes {
			end := maxShownBytes
			for !utf8.RuneStart(value[end]) {
				end--
			}
			head, rest = value[:end], "…"
		}
		if !utf8.ValidString(head) || strings.ContainsFunc(head, func(c rune) bool { return !unicode.IsGraphic(c) || unicode.IsSpace(c) }) {
			head = strconv.QuoteToASCII(head)
		}
		if any, _ := s.Everything(side.Slot).Sample(a.Addresses); a.Secret && value != any {
			head, rest = "…", ""
		}
		facts = append(facts, a.Name+"="+head+rest)
	}
	if len(facts) == 0 {
		return "any"
	}
	return strings.Join(facts, " ")
}
