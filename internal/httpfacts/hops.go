// SPDX-License-Identifier: Apache-2.0

package httpfacts

import "strings"

// A hopList iterates over the addresses in header lines from last to first. It starts with the part of the
// trusted proxies and reads no further than necessary, so a client's part cannot disturb it.
type hopList struct {
	lines     []string
	forwarded bool // RFC 7239; otherwise a plain list

	rest string // rest of the current line
	more bool   // rest has another element
}

// previous returns the next address to the left as written. It returns false at the end of the list and at an
// element without an address.
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

// lastUnquotedComma returns the index of the last comma in s outside of quotes, or -1. It reads from the right,
// so that a client's unclosed quotes cannot swallow the text of a proxy after them.
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

func escaped(s string, i int) bool {
	n := 0
	for n < i && s[i-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// forwardedFor returns the "for" node of an RFC 7239 forwarded-element. Invalid elements have none, except that
// spaces around semicolons, which many proxies write, are accepted.
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
			if seen { // parameters must not repeat (RFC 7239, section 4)
				return "", false
			}
			node, seen = value, true
		}
	}
}

// cutValue cuts a token or quoted-string from s. It returns the value without quotes and escapes, and reports
// whether a semicolon or the end follows.
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

// notToken reports whether c is invalid in a token (RFC 9110, section 5.6.2).
func notToken(c rune) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return false
	}
	return !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}
