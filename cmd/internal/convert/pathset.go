// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// A pathSet is a set of paths. A path is in the set if its exact entry is true or, without one, if its longest
// prefix entry is true. The prefix "" matches all paths.
type pathSet struct {
	prefixes map[string]bool
	exacts   map[string]bool
}

// A pathShape is a set of paths that one rule can express.
type pathShape struct {
	match  any       // path clause; nil for none
	within *Selector // selector; nil for none

	rough []string // prefixes that the selector narrows to whole segments
}

type pathNode struct {
	path  string
	exact bool
	in    bool
	level int // number of membership changes above it, from -1
}

func (n pathNode) value() string {
	if n.exact {
		return pathValue(n.path)
	}
	return pathValue(n.path) + "*"
}

// changes returns the nodes with a different membership than their parent prefix, by level. Even levels enter the set and
// odd levels leave it.
func (s pathSet) changes() (levels [][]pathNode) {
	var nodes []pathNode
	for _, prefix := range slices.Sorted(maps.Keys(s.prefixes)) { // parents first
		nodes = append(nodes, pathNode{path: prefix, in: s.prefixes[prefix]})
	}
	for _, exact := range slices.Sorted(maps.Keys(s.exacts)) {
		nodes = append(nodes, pathNode{path: exact, exact: true, in: s.exacts[exact]})
	}
	for i := range nodes {
		n, parent := &nodes[i], pathNode{level: -1}
		for _, above := range nodes[:i] {
			if !above.exact && strings.HasPrefix(n.path, above.path) {
				parent = above // the longest prefix comes last
			}
		}
		n.level = parent.level
		if n.in == parent.in {
			continue
		}
		n.level++
		for len(levels) <= n.level {
			levels = append(levels, nil)
		}
		levels[n.level] = append(levels[n.level], *n)
	}
	return levels
}

// shapes returns the rules that are needed for the set. One rule is enough unless excluded paths are below
// included paths, and other included paths are below the excluded ones.
func (s pathSet) shapes() (shapes []pathShape) {
	levels := s.changes()
	for level := 0; level < len(levels); level += 2 {
		var in, out []string
		for _, n := range levels[level] {
			in = append(in, n.value())
		}
		if level+1 < len(levels) {
			for _, n := range levels[level+1] {
				out = append(out, n.value())
			}
		}
		switch all := in[0] == "*"; {
		case all && len(out) == 0:
			shapes = append(shapes, pathShape{})
		case all:
			shapes = append(shapes, pathShape{match: Not(out...)})
		case len(out) == 0:
			shapes = append(shapes, pathShape{match: oneOrMore(in)})
		default:
			shape := pathShape{match: Not(out...), within: selectPaths(in)}
			for _, n := range levels[level] {
				if !n.exact && !strings.HasSuffix(n.path, "/") {
					shape.rough = append(shape.rough, n.path)
				}
			}
			shapes = append(shapes, shape)
		}
	}
	return shapes
}

type location struct {
	kind    locationKind
	path    string // literal
	first   bool   // ^~: skips regular expressions
	proxied bool   // nginx forwards its requests
	value   int    // assigned by the caller
}

type locationKind uint8

const (
	locationPrefix locationKind = iota
	locationExact
	locationRegexPrefix // a regular expression that is a prefix
	locationRegexExact  // a regular expression that is one path
)

// resolve returns the paths that belong to selected locations. nginx tries locations in this order: exact, longest
// prefix with ^~, regular expressions in file order, longest prefix.
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

// winner returns the value of the location for a path. Without exact, it returns the value for all paths with this
// prefix that do not match a longer pattern.
func winner(locations []location, path string, exact bool) int {
	var best location
	best.value = unlimited
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
