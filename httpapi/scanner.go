// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A scanner reads JSON text (RFC 8259). Its methods skip white space, and leave
// what they do not read where it is.
type scanner struct {
	text string
	at   int
	lone bool // the string at at has a lone surrogate
}

// peek returns the next byte that is not white space, 0 at the end (and for a
// NUL, which begins nothing).
func (s *scanner) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// end reports whether there is nothing more.
func (s *scanner) end() bool {
	s.peek()
	return s.at == len(s.text)
}

// skip reads c, and reports whether it was there.
func (s *scanner) skip(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// string reads a string.
func (s *scanner) string() (value string, ok bool) {
	if s.peek() != '"' {
		return "", false
	}
	plain := true
	for i := s.at + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			quoted := s.text[s.at : i+1]
			if plain {
				value, ok = quoted[1:len(quoted)-1], true
			} else if s.lone = loneSurrogate(quoted); !s.lone {
				value, ok = unquote(quoted)
			}
			if ok {
				s.at = i + 1
			}
			return value, ok
		case c == '\\':
			i++
			plain = false
		case c < ' ':
			return "", false
		}
	}
	return "", false
}

// unquote returns what a string with escapes says.
func unquote(quoted string) (value string, ok bool) {
	err := json.Unmarshal([]byte(quoted), &value)
	return value, err == nil
}

// loneSurrogate reports whether JSON text has an escape such as \ud83d that is half of a
// character. JSON allows it, and encoding/json reads every one of them as U+FFFD, which
// would give different values one key.
func loneSurrogate(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		r, size := escape(text[i:])
		if utf16.IsSurrogate(r) {
			low, lowSize := escape(text[i+size:])
			if utf16.DecodeRune(r, low) == utf8.RuneError {
				return true
			}
			size += lowSize
		}
		i += size - 1
	}
	return false
}

// escape returns the code unit of an escape such as \u00e9 at the beginning of text, 0
// for other ones, and the length.
func escape(text string) (unit rune, size int) {
	if len(text) >= 6 && text[0] == '\\' && text[1] == 'u' {
		if n, err := strconv.ParseUint(text[2:6], 16, 16); err == nil {
			return rune(n), 6
		}
	}
	return 0, 2
}

// number reads a number and returns it as it is written. It is false for 0x1, too,
// which begins with a number.
func (s *scanner) number() (text string, ok bool) {
	s.peek()
	rest := strings.TrimPrefix(s.text[s.at:], "-")
	whole := digits(rest)
	if whole == 0 || whole > 1 && rest[0] == '0' {
		return "", false
	}
	rest = rest[whole:]
	if strings.HasPrefix(rest, ".") {
		fraction := digits(rest[1:])
		if fraction == 0 {
			return "", false
		}
		rest = rest[1+fraction:]
	}
	if rest != "" && rest[0]|0x20 == 'e' {
		rest = rest[1:]
		if rest != "" && (rest[0] == '+' || rest[0] == '-') {
			rest = rest[1:]
		}
		exponent := digits(rest)
		if exponent == 0 {
			return "", false
		}
		rest = rest[exponent:]
	}
	text = s.text[s.at : len(s.text)-len(rest)]
	if len(text) != len(s.word()) {
		return "", false
	}
	s.at += len(text)
	return text, true
}

// digits counts the digits s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

// null reads null, and reports whether it was there.
func (s *scanner) null() bool {
	if s.peek() != 'n' || s.word() != "null" {
		return false
	}
	s.at += len("null")
	return true
}

// word returns what stands here, up to the next delimiter.
func (s *scanner) word() string {
	rest := s.text[s.at:]
	if i := strings.IndexAny(rest, " \t\n\r,:]}"); i > 0 {
		return rest[:i]
	} else if i == 0 {
		return rest[:1]
	}
	return rest
}

// startsNumber reports whether a JSON number can begin with c.
func startsNumber(c byte) bool { return c == '-' || '0' <= c && c <= '9' }

// startsValue reports whether a JSON value can begin with c.
func startsValue(c byte) bool {
	return strings.IndexByte(`{["-0123456789tfn`, c) >= 0
}
