// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A mutant is one small change of one source file.
type mutant struct {
	file     string // slash-separated, from the root of the repository
	function string // the function around the change, or "-"
	change   string // the line around the change, as in "if a [< -> <=] b {"
	nth      int    // from 1, among the equal changes of the function

	from, to int    // the range of bytes that text replaces
	text     string // the replacement
}

// name identifies the mutant. It has no line number, so changes of other lines keep it.
func (m *mutant) name() string {
	name := m.file + " " + m.function + ": " + m.change
	if m.nth > 1 {
		name += fmt.Sprintf(" (number %d)", m.nth)
	}
	return name
}

// apply returns the source with the change.
func (m *mutant) apply(source []byte) []byte {
	return slices.Concat(source[:m.from], []byte(m.text), source[m.to:])
}

// A collector gathers the mutants of a file.
type collector struct {
	file   string
	source []byte
	all    []mutant
}

// add adds a mutant that replaces a range of the source. The word is the replacement as the name shows it.
func (c *collector) add(function string, from, to int, text, word string) {
	if function == "" {
		function = "-"
	}
	c.all = append(c.all, mutant{
		file: c.file, function: function, change: describeChange(c.source, from, to, word),
		from: from, to: to, text: text,
	})
}

// list returns the mutants in the order of the source, with their numbers.
func (c *collector) list() []mutant {
	slices.SortStableFunc(c.all, func(a, b mutant) int { return a.from - b.from })
	type key struct{ function, change string }
	seen := map[key]int{}
	for i := range c.all {
		m := &c.all[i]
		k := key{m.function, m.change}
		seen[k]++
		m.nth = seen[k]
	}
	return c.all
}

// maxSide is the number of characters that a description shows on each side of the change.
const maxSide = 40

// describeChange returns the line of a change without its comment, and the change in brackets. Of longer changes and
// lines, it shows a part.
func describeChange(source []byte, from, to int, word string) string {
	start := bytes.LastIndexByte(source[:from], '\n') + 1
	end := len(source)
	if n := bytes.IndexByte(source[to:], '\n'); n >= 0 {
		end = to + n
	}
	before := strings.TrimLeft(oneSpace(source[start:from]), " ")
	after := oneSpace(source[to:end])
	for _, comment := range []string{" //", " --"} {
		after, _, _ = strings.Cut(after, comment)
	}
	after = strings.TrimRight(after, " ")
	old := oneSpace(source[from:to])
	if first, _, more := bytes.Cut(source[from:to], []byte("\n")); more {
		old = strings.TrimRight(oneSpace(first), " ") + " …"
	}
	if n := utf8.RuneCountInString(before); n > maxSide {
		before = "…" + string([]rune(before)[n-maxSide:])
	}
	if n := utf8.RuneCountInString(after); n > maxSide {
		after = string([]rune(after)[:maxSide]) + "…"
	}
	if word == "" {
		word = "nothing"
	}
	return before + "[" + old + " -> " + word + "]" + after
}

// oneSpace replaces each run of white space by one space.
func oneSpace(text []byte) string {
	var b strings.Builder
	space := false
	for _, r := range string(text) {
		if r == ' ' || r == '\t' || r == '\n' || r == '\r' {
			space = true
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	if space {
		b.WriteByte(' ')
	}
	return b.String()
}
