// SPDX-License-Identifier: Apache-2.0

package httpfacts

import "strings"

// A hopList walks the hops in header lines from the last to the first. It
// starts at the right, at what the trusted proxies wrote, and never reads
// further than it is asked to: what a client sends cannot disturb it.
type hopList struct {
	lines     []string
	forwarded bool // RFC 7239, else a plain list

	rest string // of the line being read
	more bool   // rest has another element
}

// previous returns the next hop to the left, as the header names it. It reports
// false at the end of the list, and at an element that names none.
func (l *hopList) previous() (node string, ok bool) {
	if !l.more {
		if len(l.lines) == 0 {
			return "", false
		}
		last := len(l.lines) - 1
		l.lines, l.rest = l.lines[:last], l.lines[last]
	}
	comma := strings.LastIndexByte(l.rest, ',')
	if l.forwarded {
		comma = lastUnquotedComma(l.rest)
	}
	element := strings.Trim(l.rest[comma+1:], " \t")
	if l.more = comma >= 0; l.more {
		l.rest = l.rest[:comma]
	}
	if l.forwarded {
		return forwardedFor(element)
	}
	return element, element != ""
}

// lastUnquotedComma returns the index of the last comma in s that is not inside
// a quoted string, -1 if there is none. It reads from the right, so that quotes
// a client left open cannot swallow what a proxy wrote after them.
func lastUnquotedComma(s string) int {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case ',':
			if !quoted {
				return i
			}
		case '"':
			if !quoted || !escaped(s, i) {
				quoted = !quoted
			}
		}
	}
	return -1
}

// escaped reports whether an odd number of backslashes stands before s[i].
func escaped(s string, i int) bool {
	n := 0
	for n < i && s[i-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// forwardedFor returns the "for" node of an RFC 7239 forwarded-element. Elements
// without one, or that do not keep to the grammar, have none; but spaces around
// the semicolons, which many proxies write, are let pass.
func forwardedFor(element string) (node string, ok bool) {
	rest, seen := element, false
	for {
		rest = strings.TrimLeft(rest, "; \t") // pairs may be empty
		if rest == "" {
			return node, node != ""
		}
		name, value, found := strings.Cut(rest, "=")
		if !found || name == "" || strings.ContainsFunc(name, notToken) {
			return "", false
		}
		if value, rest, ok = cutValue(value); !ok {
			return "", false
		}
		if strings.EqualFold(name, "for") {
			if seen { // each parameter at most once: RFC 7239, 4
				return "", false
			}
			node, seen = value, true
		}
	}
}

// cutValue splits a token or quoted-string off s, and reports whether it ends
// where it must: at a semicolon or at the end. The string is returned without
// quotes and escapes.
func cutValue(s string) (value, rest string, ok bool) {
	end := strings.IndexAny(s, "; \t")
	if strings.HasPrefix(s, `"`) {
		end = 1
		for end < len(s) && s[end] != '"' {
			if s[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(s) {
			return "", "", false // never closed
		}
		value, rest = unescape(s[1:end]), s[end+1:]
	} else if end >= 0 {
		value, rest = s[:end], s[end:]
	} else {
		value = s
	}
	rest = strings.TrimLeft(rest, " \t")
	return value, rest, rest == "" || rest[0] == ';'
}

// unescape removes the backslashes of quoted pairs.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// notToken reports whether c cannot occur in a token: RFC 9110, 5.6.2.
func notToken(c rune) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return false
	}
	return !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}
