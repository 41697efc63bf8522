// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"github.com/metehq/mete/internal/requestpath"
)

// A pathTree finds the templates that match a path, segment by segment. Its cost does not depend on the number of
// templates, but on the number of nodes that fit the path.
type pathTree struct {
	literals map[string]*pathTree
	wildcard *pathTree
	ends     []int32 // numbers of the templates that end here
	rests    []int32 // numbers of the templates whose rest begins after here
}

// add adds a template under a number.
func (t *pathTree) add(template *requestpath.Template, number int32) {
	for _, s := range template.Segments() {
		switch s.Kind {
		case requestpath.SegmentRest:
			t.rests = append(t.rests, number)
			return
		case requestpath.SegmentWildcard:
			if t.wildcard == nil {
				t.wildcard = &pathTree{}
			}
			t = t.wildcard
		default:
			if t.literals == nil {
				t.literals = map[string]*pathTree{}
			}
			next := t.literals[s.Text]
			if next == nil {
				next = &pathTree{}
				t.literals[s.Text] = next
			}
			t = next
		}
	}
	t.ends = append(t.ends, number)
}

// find appends the numbers of the templates that match a path.
func (t *pathTree) find(numbers []int32, path string) []int32 {
	if path == "" || path[0] != '/' {
		return numbers
	}
	return t.findRest(numbers, path[1:])
}

// findRest appends the numbers of the templates below t that match the rest of a path, which begins with a segment.
func (t *pathTree) findRest(numbers []int32, rest string) []int32 {
	numbers = append(numbers, t.rests...)
	segment, after, more := strings.Cut(rest, "/")
	for _, next := range [...]*pathTree{t.literals[segment], t.wildcard} {
		switch {
		case next == nil || next == t.wildcard && segment == "":
		case more:
			numbers = next.findRest(numbers, after)
		default:
			numbers = append(numbers, next.ends...)
		}
	}
	return numbers
}

// mostOf returns the largest sum of counts of the templates that match one path. It is an upper bound.
func (t *pathTree) mostOf(counts []int) int {
	sum := func(numbers []int32) (n int) {
		for _, i := range numbers {
			n += counts[i]
		}
		return n
	}
	literal, wild := 0, 0
	for _, next := range t.literals {
		literal = max(literal, max(sum(next.ends), next.mostOf(counts)))
	}
	if t.wildcard != nil {
		wild = max(sum(t.wildcard.ends), t.wildcard.mostOf(counts))
	}
	return sum(t.rests) + literal + wild
}
