// SPDX-License-Identifier: Apache-2.0

package curl

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ansi reads $'…', whose escapes are those of C. Browsers copy what is not plain so.
func (s *splitter) ansi() error {
	start := s.i
	s.begin()
	s.quoted = true
	for s.i += 2; s.i < len(s.text); {
		switch c := s.text[s.i]; c {
		case '\'':
			s.i++
			return nil
		case '\\':
			if s.i++; s.i < len(s.text) {
				s.ansiEscape()
			}
		default:
			s.word.WriteByte(c)
			s.i++
		}
	}
	return errorAt(s.text, start, "the quote $' is not closed", "")
}

// ansiPlain are the escapes that stand for one byte.
const (
	ansiNames = `abefnrtv\'"?E`
	ansiBytes = "\a\b\x1b\f\n\r\t\v\\'\"?\x1b"
)

// ansiEscape reads what follows a backslash.
func (s *splitter) ansiEscape() {
	c := s.text[s.i]
	if at := strings.IndexByte(ansiNames, c); at >= 0 {
		s.word.WriteByte(ansiBytes[at])
		s.i++
		return
	}
	switch c {
	case 'x':
		s.code(1, 2, 16)
	case 'u':
		s.code(1, 4, 16)
	case 'U':
		s.code(1, 8, 16)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		s.code(0, 3, 8)
	default: // which bash leaves as it is
		s.word.WriteByte('\\')
	}
}

// code reads a number of up to most digits, behind skip letters: a byte, or for u and
// U a character.
func (s *splitter) code(skip, most, base int) {
	kind := s.text[s.i]
	n := 0
	for n < most && s.i+skip+n < len(s.text) {
		if _, err := strconv.ParseUint(s.text[s.i+skip+n:s.i+skip+n+1], base, 8); err != nil {
			break
		}
		n++
	}
	if n == 0 {
		s.word.WriteByte('\\')
		return
	}
	v, _ := strconv.ParseUint(s.text[s.i+skip:s.i+skip+n], base, 32) // of digits only
	s.i += skip + n
	switch {
	case kind != 'u' && kind != 'U':
		s.word.WriteByte(byte(v))
	case v > utf8.MaxRune:
		s.word.WriteRune(utf8.RuneError)
	default:
		s.word.WriteRune(rune(v))
	}
}
