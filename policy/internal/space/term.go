// SPDX-License-Identifier: Apache-2.0

package space

import (
	"slices"
	"strings"
)

// A term is a set of values with shapes. It has the values of an interval set that have all shapes of in and no shape
// of out. A [Set] has no term that is known to be empty.
type term struct {
	cuts    []string // as in Set, within the prefixes of in
	in, out []*Shape // sorted by text
}

// maxStates bounds the search for a value of a term. A term without a known value counts as not empty, which never
// makes a rule unreachable.
const maxStates = 4096

// newTerms returns the values of cuts with all shapes of in and no shape of out, as a set.
func newTerms(cuts []string, in, out []*Shape) Set {
	for _, s := range in {
		cuts = Set{cuts: cuts}.combine(WithPrefix(s.prefix()), func(a, b bool) bool { return a && b }).cuts
	}
	var some Set
	var rest []string
	t := term{in: in, out: out}
	for i := 0; i < len(cuts); i += 2 {
		switch {
		case i+1 == len(cuts):
			rest = append(rest, cuts[i])
		case cuts[i+1] != cuts[i]+"\x00":
			rest = append(rest, cuts[i], cuts[i+1])
		case t.shapes(cuts[i]):
			some.cuts = append(some.cuts, cuts[i], cuts[i+1])
		}
	}
	if t.cuts = rest; len(rest) > 0 && !t.isEmpty() {
		some.terms = []term{t}
	}
	return some
}

func (t *term) equal(u *term) bool {
	same := func(a, b *Shape) bool { return a.text == b.text }
	return slices.Equal(t.cuts, u.cuts) && slices.EqualFunc(t.in, u.in, same) && slices.EqualFunc(t.out, u.out, same)
}

// withShape returns list, which is sorted, with one more shape.
func withShape(list []*Shape, s *Shape) []*Shape {
	at, known := slices.BinarySearchFunc(list, s, func(a, b *Shape) int { return strings.Compare(a.text, b.text) })
	if known {
		return list
	}
	return slices.Insert(slices.Clone(list), at, s)
}

// has reports whether a value is in t.
func (t *term) has(value string) bool { return (Set{cuts: t.cuts}).Has(value) && t.shapes(value) }

// shapes reports whether a value has all shapes of in and no shape of out.
func (t *term) shapes(value string) bool {
	return !slices.ContainsFunc(t.in, func(s *Shape) bool { return !s.has(value) }) &&
		!slices.ContainsFunc(t.out, func(s *Shape) bool { return s.has(value) })
}

// isEmpty reports whether t has no value. It returns false if the search exceeds its bound.
func (t *term) isEmpty() bool {
	if _, ok := t.plainValue(); ok {
		return false
	}
	_, found, complete := t.search(false)
	return !found && complete
}

// plainValue returns the plain value of a shape, if it is in t.
func (t *term) plainValue() (string, bool) {
	for _, s := range t.in {
		if value := s.plainValue(); t.has(value) {
			return value, true
		}
	}
	return "", false
}

// sample returns a value of t, preferably a readable one that requests can have.
func (t *term) sample() (string, bool) {
	if value, ok := t.plainValue(); ok {
		return value, true
	}
	if value, ok, _ := t.search(true); ok {
		return value, true
	}
	value, ok, _ := t.search(false)
	return value, ok
}

// A node of the search is a prefix of values, and the states of all shapes after it.
type node struct {
	prefix string
	lo, hi int // the numbers of cuts up to the prefix, and up to the last value with it
	states []int
}

// search looks for the shortest value of t. With clean, it looks for one without empty and dot segments, because no
// request has another path. found is false if there is none or, unless complete, if the search exceeds maxStates.
func (t *term) search(clean bool) (value string, found, complete bool) {
	first := node{hi: len(t.cuts), states: make([]int, len(t.in)+len(t.out))}
	first.lo = countUpTo(t.cuts, "")
	queue, seen := []node{first}, map[string]bool{}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if t.accepts(&n) && (!clean || endsClean(n.prefix)) {
			return n.prefix, true, true
		}
		for _, c := range t.branches(&n) {
			if clean && !staysClean(n.prefix, c) {
				continue
			}
			next, ok := t.follow(&n, c)
			if !ok || seen[next.id(clean)] {
				continue
			}
			if seen[next.id(clean)] = true; len(seen) > maxStates {
				return "", false, false
			}
			queue = append(queue, next)
		}
	}
	return "", false, true
}

// id identifies nodes with the same continuations.
func (n *node) id(clean bool) string {
	b := make([]byte, 0, 64)
	number := func(i int) { b = append(b, byte(i), byte(i>>8), byte(i>>16)) }
	number(n.lo)
	if number(n.hi); n.lo < n.hi { // a cut continues the prefix
		number(len(n.prefix))
	}
	if clean {
		segment := n.prefix[strings.LastIndexByte(n.prefix, '/')+1:]
		if len(segment) > 2 || strings.Trim(segment, ".") != "" {
			segment = "x"
		}
		b = append(b, segment...)
	}
	b = append(b, '|')
	for _, s := range n.states {
		number(s)
	}
	return string(b)
}

// accepts reports whether the prefix of n is in t.
func (t *term) accepts(n *node) bool {
	if n.lo%2 == 0 {
		return false
	}
	for i, s := range t.in {
		if !s.accepts(n.states[i]) {
			return false
		}
	}
	for i, s := range t.out {
		if s.accepts(n.states[len(t.in)+i]) {
			return false
		}
	}
	return true
}

// follow returns the node after one more byte, or false if no value of t has that prefix.
func (t *term) follow(n *node, c byte) (node, bool) {
	next := node{prefix: n.prefix + string([]byte{c}), lo: n.lo, hi: n.hi, states: make([]int, len(n.states))}
	if n.lo < n.hi {
		next.lo, next.hi = countUpTo(t.cuts, next.prefix), countBefore(t.cuts, next.prefix)
	}
	if next.lo == next.hi && next.lo%2 == 0 {
		return next, false
	}
	for i, s := range t.in {
		if next.states[i] = s.next(n.states[i], c); next.states[i] == dead {
			return next, false
		}
	}
	for i, s := range t.out {
		next.states[len(t.in)+i] = dead
		if before := n.states[len(t.in)+i]; before != dead {
			next.states[len(t.in)+i] = s.next(before, c)
		}
	}
	return next, true
}

// branches returns a byte of every class that t distinguishes after n, readable bytes first.
func (t *term) branches(n *node) []byte {
	var special [256]bool
	var bytes []byte
	for i, s := range t.in {
		bytes = s.appendBytes(bytes, n.states[i])
	}
	for i, s := range t.out {
		bytes = s.appendBytes(bytes, n.states[len(t.in)+i])
	}
	for _, c := range bytes {
		special[c] = true
	}
	special['/'] = true // for the segments of clean paths
	special['.'] = true
	var starts [256]bool // a cut has this byte
	for i := n.lo; i < n.hi; i++ {
		if at := len(n.prefix); len(t.cuts[i]) > at {
			starts[t.cuts[i][at]] = true
			if len(t.cuts[i]) > at+1 {
				special[t.cuts[i][at]] = true // the cut is inside
			}
		}
	}
	class, classes := 0, [256]int{}
	for c := range 256 {
		if starts[c] {
			class++
		}
		classes[c] = class
	}
	var chosen []byte
	taken := make([]bool, class+1)
	for _, c := range readableBytes {
		switch {
		case special[c]:
			chosen = append(chosen, c)
		case !taken[classes[c]]:
			taken[classes[c]], chosen = true, append(chosen, c)
		}
	}
	return chosen
}

// readableBytes are all bytes, letters and digits first.
var readableBytes = func() (list []byte) {
	const first = "xabcdefghijklmnopqrstuvwyz0123456789-_/.ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	list = append(list, first...)
	for c := ' '; c <= '~'; c++ {
		if !strings.ContainsRune(first, c) {
			list = append(list, byte(c))
		}
	}
	for c := range 256 {
		if c < ' ' || c > '~' {
			list = append(list, byte(c))
		}
	}
	return list
}()

// staysClean reports whether a path without empty and dot segments can begin with prefix and c.
func staysClean(prefix string, c byte) bool {
	if c != '/' || prefix == "" {
		return true
	}
	return !strings.HasSuffix(prefix, "/") && endsClean(prefix)
}

// endsClean reports whether the last segment of a path is no dot segment.
func endsClean(path string) bool {
	segment := path[strings.LastIndexByte(path, '/')+1:]
	return segment != "." && segment != ".."
}

// countUpTo returns the number of cuts that are not above value.
func countUpTo(cuts []string, value string) int {
	at, known := slices.BinarySearch(cuts, value)
	if known {
		at++
	}
	return at
}

// countBefore returns the number of cuts that are not above every value with the prefix.
func countBefore(cuts []string, prefix string) int {
	at, _ := slices.BinarySearchFunc(cuts, prefix, func(cut, prefix string) int {
		if strings.HasPrefix(cut, prefix) {
			return -1
		}
		return strings.Compare(cut, prefix)
	})
	return at
}
