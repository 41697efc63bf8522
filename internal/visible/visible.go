// SPDX-License-Identifier: Apache-2.0

// Package visible makes foreign text safe to print: names, values and file contents that
// others have written must not control the terminal.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s with each character that is not printable as \uXXXX, line ends included.
func Text(s string) string { return Escape(s, func(r rune) bool { return !unicode.IsPrint(r) }) }

// Lines is like [Text], but keeps line ends.
func Lines(s string) string {
	return Escape(s, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}

// Escape returns s with each character for which hidden is true as \uXXXX. Bytes that are not
// UTF-8 become U+FFFD: a terminal may act on them.
func Escape(s string, hidden func(rune) bool) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
