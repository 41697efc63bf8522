// SPDX-License-Identifier: Apache-2.0

// Package display measures, cuts and escapes text for terminals.
package display

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/width"

	"github.com/metehq/mete/internal/visible"
)

// Width returns the number of columns of s. East Asian wide letters take two columns and combining marks none.
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

const ellipsis = "…"

// Cut returns s, or the longest prefix that fits into the columns together with an ellipsis.
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

// Wrap breaks text at spaces into lines of at most the given columns. The first line begins with first and the
// others with hang. A longer word gets its own line. Control characters become spaces.
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

// EscapeUnsafe returns s with unsafe characters replaced by \uXXXX: control characters, invisible characters, combining
// marks and right-to-left text, which would rearrange its surroundings.
func EscapeUnsafe(s string) string {
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
