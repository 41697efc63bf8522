// SPDX-License-Identifier: Apache-2.0

package space

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Box is a set of requests. Each side restricts one attribute to a set; sides are in ascending order of their
// slots. Attributes without a side are unrestricted.
type Box []Side

// A Side is the values of the attribute in a slot.
type Side struct {
	Slot int
	Set  Set
}

// A Space describes the attributes of boxes. It is not safe for concurrent use.
type Space struct {
	attribute func(slot int) Attribute
	universe  []Set // by slot
}

type Attribute struct {
	Name      string
	Addresses bool // its values are addresses
	Secret    bool // messages must not show its values

	// Plain are typical values, the most likely first.
	Plain []string
}

// New returns a space. attribute describes the attribute of a slot; attributes may be added later.
func New(attribute func(slot int) Attribute) *Space { return &Space{attribute: attribute} }

// Attribute returns the attribute in slot.
func (s *Space) Attribute(slot int) Attribute { return s.attribute(slot) }

// Plain returns a typical value of the attribute in slot that is in set. It returns false if set contains only
// absence.
func (s *Space) Plain(slot int, set Set) (value string, ok bool) {
	a := s.attribute(slot)
	for _, plain := range a.Plain {
		if set.Has(plain) {
			return plain, true
		}
	}
	return set.Sample(a.Addresses)
}

// Everything returns the set of all values of the attribute in slot, including absence.
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

// Weight returns the cost of comparing b with another box: 1 for a small box.
func (b Box) Weight() int {
	cuts := 0
	for _, s := range b {
		cuts += len(s.Set.cuts) + 16*len(s.Set.terms)
	}
	return 1 + cuts/16
}

// With returns a copy of b with a side added or replaced.
func (b Box) With(slot int, set Set) Box {
	i, ok := b.find(slot)
	b = slices.Clone(b)
	if !ok {
		b = slices.Insert(b, i, Side{})
	}
	b[i] = Side{slot, set}
	return b
}

// Apart reports whether b and e have no request in common.
func (s *Space) Apart(b, e Box) bool {
	return slices.ContainsFunc(e, func(side Side) bool { return !s.Side(b, side.Slot).Meets(side.Set) })
}

// And returns the intersection of b and e.
func (s *Space) And(b, e Box) Box {
	for _, side := range e {
		b = b.With(side.Slot, s.Side(b, side.Slot).And(side.Set))
	}
	return b
}

// Within reports whether b is a subset of e.
func (s *Space) Within(b, e Box) bool {
	return !slices.ContainsFunc(e, func(side Side) bool { return !s.Side(b, side.Slot).Within(side.Set) })
}

// Cut appends the difference of b and e to left, as disjoint boxes.
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

// Subtract returns boxes without e, as disjoint boxes.
func (s *Space) Subtract(boxes []Box, e Box) (left []Box) {
	for _, b := range boxes {
		if s.Apart(b, e) {
			left = append(left, b)
		} else {
			left = s.Cut(left, b, e)
		}
	}
	return left
}

const maxShownBytes = 60

// Facts describes one request in b for messages. Messages are logged, so they contain no secrets.
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
