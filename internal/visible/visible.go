// SPDX-License-Identifier: Apache-2.0

// Package visible makes untrusted text safe to print, so that names, values and file contents cannot control the
// terminal.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s with all unprintable characters, including line ends, as \uXXXX.
func Text(s string) string { return Escape(s, func(r rune) bool { return !unicode.IsPrint(r) }) }

// Lines is like [Text], but keeps line ends.
func Lines(s string) string {
	return Escape(s, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}

// Escape returns s with the characters for which hidden is true as \uXXXX. Invalid UTF-8 becomes U+FFFD, because a
// terminal may interpret it.
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
