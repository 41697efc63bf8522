// SPDX-License-Identifier: Apache-2.0

// Package display knows how text stands on a terminal: how wide it is, and what of it
// would do more than stand there.
package display

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/width"

	"github.com/metehq/mete/internal/visible"
)

// Width is how many columns s takes. Letters of East Asia take two, and marks on other
// letters none.
func Width(s string) (n int) {
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300: // nearly all there is
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// ellipsis stands where something was cut off.
const ellipsis = "…"

// Cut returns s, or as much of its beginning as fits in so many columns with an
// ellipsis behind it.
func Cut(s string, columns int) string {
	if Width(s) <= columns {
		return s
	}
	if columns <= 0 {
		return ""
	}
	n := 0
	for i, r := range s {
		if n += runeWidth(r); n > columns-1 {
			return s[:i] + ellipsis
		}
	}
	return s
}

// Wrap breaks text between words into lines of at most so many columns. The first line begins
// with first, the others with hang. A longer word has a line of its own. Control characters
// are spaces, so no text ends its line.
func Wrap(text string, columns int, first, hang string) []string {
	var lines []string
	line, begun := first, false
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		if begun && Width(line)+1+Width(word) > columns {
			lines, line, begun = append(lines, line), hang, false
		}
		if begun {
			line += " "
		}
		line, begun = line+word, true
	}
	return append(lines, line)
}

// Inert returns s with all replaced, by \uXXXX, that does not simply stand there: what
// speaks to the terminal, has no form of its own, marks other letters, or is written
// from right to left and would move what stands beside it.
func Inert(s string) string {
	return visible.Escape(s, func(r rune) bool { return r > unicode.MaxASCII && moves(r) || !unicode.IsPrint(r) })
}

func moves(r rune) bool {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return true
	}
	p, _ := bidi.LookupRune(r)
	return p.Class() == bidi.R || p.Class() == bidi.AL
}

// Quote returns s as one argument of a shell.
func Quote(s string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:=@%+,", r)
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
