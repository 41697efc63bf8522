// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"slices"
	"sort"
	"strings"

	"github.com/metehq/mete/internal/requestpath"
)

// An index finds the rules that may apply to a request, so that a decision costs only the relevant rules,
// regardless of the total. Each branch looks up one attribute. It continues with the rules that want that value,
// and with the rules that do not depend on the attribute.
//
// The index returns every rule that applies. The clauses of a rule decide whether it does.

type item struct {
	number  int32
	clauses []clause
}

const (
	// leafItems is the number of items that are tried one by one.
	leafItems = 8

	// maxPlaces bounds the entries in the branches of one index, and maxLookedAt the values that chooseSlot counts to
	// choose an attribute. Above either bound, the index stops dividing. Lists of many values in several clauses multiply
	// the entries.
	maxPlaces   = 1 << 21
	maxLookedAt = 1 << 22
)

// A branch is a node of an index.
type branch struct {
	items []int32 // in ascending order, if no attribute divides them

	slot     int
	exact    map[string]*branch
	prefixes []prefixBranch // in byte order
	suffixes map[string]*branch
	tree     *pathTree // of templates, or nil
	trees    []*branch // by number in tree
	networks map[netip.Prefix]*branch
	bits     []int16 // lengths of prefixes in networks; IPv4 lengths are below 0
	rest     *branch // items that do not depend on slot, or nil
}

type prefixBranch struct {
	prefix string
	outer  int // index of the longest other prefix of this one, or -1
	to     *branch
}

// find appends the numbers of the items that may match, in ascending order.
func (b *branch) find(found []int32, m *Matcher, s *scratch) []int32 {
	if b == nil {
		return found
	}
	if b.slot < 0 {
		return append(found, b.items...)
	}
	return sortUnique(b.collect(found, m, s))
}

// allItems returns the numbers of all items, in ascending order, if no attribute divides them; otherwise nil. The
// caller must not change the slice.
func (b *branch) allItems() []int32 {
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
		if b.tree != nil {
			var room [8]int32
			for _, number := range b.tree.find(room[:0], f.value) {
				found = b.trees[number].collect(found, m, s)
			}
		}
		if len(b.suffixes) > 0 {
			found = b.collectSuffixes(found, f.value, m, s)
		}
		if len(b.prefixes) > 0 {
			for at := b.longestPrefix(f.value); at >= 0; at = b.prefixes[at].outer {
				found = b.prefixes[at].to.collect(found, m, s)
			}
		}
	}
	return found
}

// collectSuffixes collects from the branches whose suffix a host has: each starts with a dot.
func (b *branch) collectSuffixes(found []int32, host string, m *Matcher, s *scratch) []int32 {
	for i := 1; i < len(host); i++ {
		if host[i] != '.' {
			continue
		}
		if to := b.suffixes[host[i:]]; to != nil {
			found = to.collect(found, m, s)
		}
	}
	return found
}

// longestPrefix returns the index of the longest prefix of value, or -1. The outer links lead from it to all
// shorter prefixes.
func (b *branch) longestPrefix(value string) int {
	// The longest prefix of value is the last entry that sorts before it, or an outer entry of that entry.
	at := sort.Search(len(b.prefixes), func(i int) bool { return b.prefixes[i].prefix > value }) - 1
	for at >= 0 && !strings.HasPrefix(value, b.prefixes[at].prefix) {
		at = b.prefixes[at].outer
	}
	return at
}

type indexer struct {
	attributes []Attribute
	places     int // that may still be used
	looks      int // values that may still be counted
}

// newIndex builds an index of items, which are in ascending order, by their clauses.
func newIndex(attributes []Attribute, items []item) *branch {
	x := indexer{attributes, maxPlaces, maxLookedAt}
	return x.newBranch(items)
}

func (x *indexer) newBranch(items []item) *branch {
	if len(items) == 0 {
		return nil
	}
	slot := -1
	if len(items) > leafItems {
		slot = x.chooseSlot(items)
	}
	b := &branch{slot: slot}
	if slot < 0 {
		for _, it := range items {
			if n := len(b.items); n == 0 || b.items[n-1] != it.number { // once for all alternatives
				b.items = append(b.items, it.number)
			}
		}
		return b
	}
	x.divide(b, items)
	return b
}

// patternFor returns the values of slot under which a branch keeps the item. It returns nil if the item does not
// depend on slot.
func (it *item) patternFor(slot int) *pattern {
	for i := range it.clauses {
		c := &it.clauses[i]
		if c.slot == slot && !c.negate && !slices.Contains(c.prefixes, "") {
			return &c.pattern
		}
	}
	return nil
}

func (p *pattern) size() int {
	return len(p.exact) + len(p.prefixes) + len(p.suffixes) + len(p.templates) + len(p.networks)
}

// A tally counts the entries and items that depend on one attribute.
type tally struct { // entries that the attribute would take
	places   int        // of the items that depend on it
	patterns []*pattern // of the items that depend on it
}

// chooseSlot returns the attribute that leaves the fewest items in the worst case, or -1 if no attribute is worth
// dividing by.
func (x *indexer) chooseSlot(items []item) int {
	tallies := map[int]*tally{}
	var slots []int
	for i := range items {
		clauses := items[i].clauses
		for j := range clauses {
			c := &clauses[j]
			p := items[i].patternFor(c.slot)
			if p != &c.pattern { // the item does not depend on the slot, or has another clause for it
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
			left++ // verifying a token is expensive: prefer other attributes
		}
		if left+1 >= least || t.places > min(x.places, x.looks) {
			continue
		}
		x.looks -= t.places
		if left += t.maxItems(); left < least {
			best, least = slot, left
		}
	}
	if best >= 0 {
		x.places -= tallies[best].places
	}
	return best
}

// maxItems returns the number of items of the value that has the most.
func (t *tally) maxItems() (most int) {
	values := map[string]int{}
	for _, p := range t.patterns {
		p.eachValue(func(value string) {
			values[value]++
			most = max(most, values[value])
		})
	}
	return most
}

// eachValue calls f with a distinct text for every value of p.
func (p *pattern) eachValue(f func(string)) {
	for _, v := range p.exact {
		f(v)
	}
	for _, v := range p.prefixes {
		f(v + "*")
	}
	for _, v := range p.suffixes {
		f("*" + v)
	}
	for _, t := range p.templates {
		f("{}" + t.String())
	}
	for _, n := range p.networks {
		f(n.String())
	}
}

// divide distributes items to the values of b's slot. It creates branches in the order of the items, so that the
// same policy gives the same index even if maxPlaces cuts it off.
func (x *indexer) divide(b *branch, items []item) {
	exact, prefixes, suffixes, networks := shelf[string]{}, shelf[string]{}, shelf[string]{}, shelf[netip.Prefix]{}
	templates, parsed := shelf[string]{}, map[string]*requestpath.Template{}
	var rest []item
	for _, it := range items {
		p := it.patternFor(b.slot)
		if p == nil {
			rest = append(rest, it)
			continue
		}
		it.clauses = slices.DeleteFunc(slices.Clone(it.clauses), func(c clause) bool { return c.slot == b.slot })
		exact.put(p.exact, it)
		prefixes.put(p.prefixes, it)
		suffixes.put(p.suffixes, it)
		networks.put(p.networks, it)
		for _, t := range p.templates {
			templates.put([]string{t.Shape()}, it)
			parsed[t.Shape()] = t
		}
	}
	b.exact, b.suffixes = x.divideTexts(&exact), x.divideTexts(&suffixes)
	for i, shape := range templates.order {
		if b.tree == nil {
			b.tree = &pathTree{}
		}
		b.tree.add(parsed[shape], int32(i))
		b.trees = append(b.trees, x.newBranch(templates.items[shape]))
	}
	x.dividePrefixes(b, &prefixes)
	x.divideNetworks(b, &networks)
	b.rest = x.newBranch(rest)
}

type shelf[V comparable] struct {
	items map[V][]item
	order []V // in order of insertion
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

// divideTexts returns a branch per text of a shelf, or nil.
func (x *indexer) divideTexts(texts *shelf[string]) map[string]*branch {
	if len(texts.order) == 0 {
		return nil
	}
	to := make(map[string]*branch, len(texts.order))
	for _, v := range texts.order {
		to[v] = x.newBranch(texts.items[v])
	}
	return to
}

func (x *indexer) dividePrefixes(b *branch, prefixes *shelf[string]) {
	for _, v := range prefixes.order {
		b.prefixes = append(b.prefixes, prefixBranch{prefix: v, to: x.newBranch(prefixes.items[v])})
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
		b.networks[n] = x.newBranch(networks.items[n])
		bits := n.Bits()
		if n.Addr().Is4() {
			bits = -bits - 1
		}
		if coded := int16(bits); !slices.Contains(b.bits, coded) {
			b.bits = append(b.bits, coded)
		}
	}
}
