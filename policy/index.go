// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"slices"
	"sort"
	"strings"
)

// An index finds the rules that may apply to a request without looking at the
// others, so that deciding costs what the rules cost that are about the request,
// however many there are. It asks about one attribute after the other: each branch
// looks one of them up, and goes on with the rules that want that value, and with
// those to which it makes no difference.
//
// It leaves out no rule that applies; whether one does is for its clauses to say.

// An item is what is found: the number of a rule and what its clauses are.
type item struct {
	number  int32
	clauses []clause
}

const (
	// leafItems is how many items are tried one by one.
	leafItems = 8

	// maxPlaces bounds the branches' entries for one index, and maxLookedAt the
	// values that are counted to choose what divides them. Beyond either it stops
	// dividing: lists of many values in several clauses multiply.
	maxPlaces   = 1 << 21
	maxLookedAt = 1 << 22
)

// A branch is a part of an index.
type branch struct {
	items []int32 // in ascending order, where nothing divides them

	slot     int
	exact    map[string]*branch
	prefixes []prefixBranch // in byte order
	networks map[netip.Prefix]*branch
	bits     []int16 // lengths of prefixes in networks: those of IPv4 below 0
	rest     *branch // items that do not depend on slot, nil for none
}

// A prefixBranch is for values with one prefix.
type prefixBranch struct {
	prefix string
	outer  int // the place of the longest other prefix of this one, -1 for none
	to     *branch
}

// find appends the numbers of the items that may hold, in ascending order.
func (b *branch) find(found []int32, m *Matcher, s *scratch) []int32 {
	if b == nil {
		return found
	}
	if b.slot < 0 {
		return append(found, b.items...)
	}
	return sorted(b.collect(found, m, s))
}

// undivided returns the numbers of all items in ascending order if nothing divides them, and else
// nil. The caller must not change them.
func (b *branch) undivided() []int32 {
	if b == nil || b.slot >= 0 {
		return nil
	}
	return b.items
}

func (b *branch) collect(found []int32, m *Matcher, s *scratch) []int32 {
	for ; b != nil; b = b.rest {
		if b.slot < 0 {
			return append(found, b.items...)
		}
		f := m.fact(s, b.slot)
		if !f.present {
			continue
		}
		if to := b.exact[f.value]; to != nil {
			found = to.collect(found, m, s)
		}
		for _, n := range b.bits {
			if (n < 0) != f.addr.Is4() {
				continue
			}
			p, _ := f.addr.Prefix(max(int(n), -int(n)-1))
			if to := b.networks[p]; to != nil {
				found = to.collect(found, m, s)
			}
		}
		if len(b.prefixes) > 0 {
			for at := b.under(f.value); at >= 0; at = b.prefixes[at].outer {
				found = b.prefixes[at].to.collect(found, m, s)
			}
		}
	}
	return found
}

// under is the place of the longest prefix that a value has, -1 for none. All
// shorter ones are that one's outer ones.
func (b *branch) under(value string) int {
	// A prefix of the value is the last one that is not behind it, or one of that.
	at := sort.Search(len(b.prefixes), func(i int) bool { return b.prefixes[i].prefix > value }) - 1
	for at >= 0 && !strings.HasPrefix(value, b.prefixes[at].prefix) {
		at = b.prefixes[at].outer
	}
	return at
}

// An indexer makes an index.
type indexer struct {
	attributes []Attribute
	places     int // that may still be used
	looks      int // values that may still be counted
}

// newIndex indexes items, which are in ascending order, by their clauses.
func newIndex(attributes []Attribute, items []item) *branch {
	x := indexer{attributes, maxPlaces, maxLookedAt}
	return x.branch(items)
}

func (x *indexer) branch(items []item) *branch {
	if len(items) == 0 {
		return nil
	}
	slot := -1
	if len(items) > leafItems {
		slot = x.divider(items)
	}
	b := &branch{slot: slot}
	if slot < 0 {
		for _, it := range items {
			b.items = append(b.items, it.number)
		}
		return b
	}
	x.divide(b, items)
	return b
}

// places are the values under which an item is found in a branch about slot; nil
// where it does not depend on it.
func (it *item) places(slot int) *pattern {
	for i := range it.clauses {
		c := &it.clauses[i]
		if c.slot == slot && !c.negate && !slices.Contains(c.prefixes, "") {
			return &c.pattern
		}
	}
	return nil
}

func (p *pattern) size() int { return len(p.exact) + len(p.prefixes) + len(p.networks) }

// A tally is what one attribute would do for the items of a branch.
type tally struct {
	places   int        // it would take
	patterns []*pattern // of the items that depend on it
}

// divider returns the attribute that divides items best: by which the fewest of
// them are left in the worst case; -1 if none is worth it.
func (x *indexer) divider(items []item) int {
	tallies := map[int]*tally{}
	var slots []int
	for i := range items {
		clauses := items[i].clauses
		for j := range clauses {
			c := &clauses[j]
			p := items[i].places(c.slot)
			if p != &c.pattern { // it does not depend on it, or has another clause about it
				continue
			}
			t := tallies[c.slot]
			if t == nil {
				t = &tally{}
				tallies[c.slot], slots = t, append(slots, c.slot)
			}
			t.places += p.size()
			t.patterns = append(t.patterns, p)
		}
	}
	best, least := -1, len(items)-len(items)/4
	for _, slot := range slots {
		t := tallies[slot]
		left := len(items) - len(t.patterns)
		if x.attributes[slot].Source == SourceJWT {
			left++ // a claim may have to be verified: rather another
		}
		if left+1 >= least || t.places > min(x.places, x.looks) {
			continue
		}
		x.looks -= t.places
		if left += t.most(); left < least {
			best, least = slot, left
		}
	}
	if best >= 0 {
		x.places -= tallies[best].places
	}
	return best
}

// most is how many items there are for the value that has the most of them.
func (t *tally) most() (most int) {
	values := map[string]int{}
	for _, p := range t.patterns {
		p.each(func(value string) {
			values[value]++
			most = max(most, values[value])
		})
	}
	return most
}

// each calls f with a text for every value of p, which differs from all others.
func (p *pattern) each(f func(string)) {
	for _, v := range p.exact {
		f(v)
	}
	for _, v := range p.prefixes {
		f(v + "*")
	}
	for _, n := range p.networks {
		f(n.String())
	}
}

// divide puts items under the values of b's slot. Branches are made in the order of
// the items: the same policy gives the same index, also where there is no room for
// all that could be divided.
func (x *indexer) divide(b *branch, items []item) {
	exact, prefixes, networks := shelf[string]{}, shelf[string]{}, shelf[netip.Prefix]{}
	var rest []item
	for _, it := range items {
		p := it.places(b.slot)
		if p == nil {
			rest = append(rest, it)
			continue
		}
		it.clauses = slices.DeleteFunc(slices.Clone(it.clauses), func(c clause) bool { return c.slot == b.slot })
		exact.put(p.exact, it)
		prefixes.put(p.prefixes, it)
		networks.put(p.networks, it)
	}
	if len(exact.order) > 0 {
		b.exact = make(map[string]*branch, len(exact.order))
		for _, v := range exact.order {
			b.exact[v] = x.branch(exact.items[v])
		}
	}
	x.dividePrefixes(b, &prefixes)
	x.divideNetworks(b, &networks)
	b.rest = x.branch(rest)
}

// A shelf keeps items under values.
type shelf[V comparable] struct {
	items map[V][]item
	order []V // in which the values came
}

func (s *shelf[V]) put(values []V, it item) {
	if s.items == nil && len(values) > 0 {
		s.items = map[V][]item{}
	}
	for _, v := range values {
		list, known := s.items[v]
		if s.items[v] = append(list, it); !known {
			s.order = append(s.order, v)
		}
	}
}

func (x *indexer) dividePrefixes(b *branch, prefixes *shelf[string]) {
	for _, v := range prefixes.order {
		b.prefixes = append(b.prefixes, prefixBranch{prefix: v, to: x.branch(prefixes.items[v])})
	}
	slices.SortFunc(b.prefixes, func(p, q prefixBranch) int { return strings.Compare(p.prefix, q.prefix) })
	for i := range b.prefixes {
		outer := i - 1
		for outer >= 0 && !strings.HasPrefix(b.prefixes[i].prefix, b.prefixes[outer].prefix) {
			outer = b.prefixes[outer].outer
		}
		b.prefixes[i].outer = outer
	}
}

func (x *indexer) divideNetworks(b *branch, networks *shelf[netip.Prefix]) {
	if len(networks.order) == 0 {
		return
	}
	b.networks = make(map[netip.Prefix]*branch, len(networks.order))
	for _, n := range networks.order {
		b.networks[n] = x.branch(networks.items[n])
		bits := n.Bits()
		if n.Addr().Is4() {
			bits = -bits - 1
		}
		if coded := int16(bits); !slices.Contains(b.bits, coded) {
			b.bits = append(b.bits, coded)
		}
	}
}
