// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// A pathSet is a set of paths: those for which the longest prefix, or the exact path, is
// true. The prefix "" stands for all paths.
type pathSet struct {
	prefixes map[string]bool
	exacts   map[string]bool
}

// A pathShape is a set of paths in the terms of one rule.
type pathShape struct {
	match  any       // the path clause, nil for none
	within *Selector // the selector, nil for none

	rough []string // prefixes that the selector narrows to whole segments
}

// shapes returns the rules that the set takes. It is one in most cases. It is more if
// paths are in the set below paths that are not, below paths that are.
func (s pathSet) shapes() (shapes []pathShape) {
	type node struct {
		path  string
		exact bool
		in    bool
		level int // how many times the membership changes on the way to it
	}
	var nodes []node
	for _, prefix := range slices.Sorted(maps.Keys(s.prefixes)) { // parents first
		nodes = append(nodes, node{path: prefix, in: s.prefixes[prefix]})
	}
	for _, exact := range slices.Sorted(maps.Keys(s.exacts)) {
		nodes = append(nodes, node{path: exact, exact: true, in: s.exacts[exact]})
	}
	changes := map[int][]node{} // by level, the nodes that differ from their parent
	deepest := -1
	for i := range nodes {
		n := &nodes[i]
		parent := node{level: -1}
		for _, p := range nodes[:i] {
			if !p.exact && strings.HasPrefix(n.path, p.path) && (n.exact || n.path != p.path) {
				parent = p // the longest comes last
			}
		}
		n.level = parent.level
		if n.in != parent.in {
			n.level++
			changes[n.level] = append(changes[n.level], *n)
			deepest = max(deepest, n.level)
		}
	}
	values := func(nodes []node) (all []string) {
		for _, n := range nodes {
			value := pathValue(n.path)
			if !n.exact {
				value += "*"
			}
			all = append(all, value)
		}
		return all
	}
	// Even levels enter the set, odd ones leave it.
	for level := 0; level <= deepest; level += 2 {
		in, out := changes[level], values(changes[level+1])
		shape := pathShape{}
		switch {
		case len(in) == 0:
			continue
		case in[0].path == "" && len(out) > 0:
			shape.match = Not(out...)
		case in[0].path == "":
		case len(out) == 0:
			shape.match = oneOrMore(values(in))
		default:
			shape.match, shape.within = Not(out...), &Selector{}
			for _, n := range in {
				switch {
				case n.exact:
					shape.within.Exact = append(shape.within.Exact, pathValue(n.path))
				default:
					shape.within.Prefix = append(shape.within.Prefix, pathValue(n.path))
					if !strings.HasSuffix(n.path, "/") {
						shape.rough = append(shape.rough, n.path)
					}
				}
			}
		}
		shapes = append(shapes, shape)
	}
	return shapes
}

// A location is a part of a server's paths with a value of its own.
type location struct {
	kind  locationKind
	path  string // literal
	first bool   // ^~: regular expressions are not tried
	value int    // what the location is, by the caller's numbers
}

// locationKind is how a location compares its path.
type locationKind uint8

const (
	locationPrefix locationKind = iota
	locationExact
	locationRegexPrefix // a regular expression that is a prefix
	locationRegexExact  // a regular expression that is one path
)

// resolve returns the paths whose location is in the set, by nginx's order: exact, the
// longest prefix with ^~, regular expressions as written, the longest prefix.
func resolve(locations []location, in func(value int) bool) pathSet {
	s := pathSet{map[string]bool{}, map[string]bool{}}
	for _, l := range locations {
		switch l.kind {
		case locationPrefix, locationRegexPrefix:
			s.prefixes[l.path] = false
		default:
			s.exacts[l.path] = false
		}
	}
	for path := range s.prefixes {
		s.prefixes[path] = in(winner(locations, path, false))
	}
	for path := range s.exacts {
		s.exacts[path] = in(winner(locations, path, true))
	}
	return s
}

// winner returns the value of the location that serves a path or, without exact, the paths
// that begin with it and match no longer pattern.
func winner(locations []location, path string, exact bool) int {
	var best location
	best.value = -1
	longest := -1
	for _, l := range locations {
		switch {
		case l.kind == locationExact && exact && l.path == path:
			return l.value
		case l.kind == locationPrefix && strings.HasPrefix(path, l.path) && cmp.Compare(len(l.path), longest) > 0:
			best, longest = l, len(l.path)
		}
	}
	if best.first {
		return best.value
	}
	for _, l := range locations {
		if l.kind == locationRegexPrefix && strings.HasPrefix(path, l.path) || l.kind == locationRegexExact && exact && l.path == path {
			return l.value
		}
	}
	return best.value
}
