// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A scanner parses JSON strictly by RFC 8259. It is five times faster than encoding/json for lines of a trace; a
// fuzz test compares both. Strings without escapes share the memory of the text.
type scanner struct {
	text string
	i    int
}

// peek skips white space and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.text) {
		switch c := s.text[s.i]; c {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) atEnd() bool { return s.peek() == 0 && s.i == len(s.text) }

// unexpected returns an error about the next token.
func (s *scanner) unexpected(wanted string) error {
	if s.i >= len(s.text) {
		return fmt.Errorf("unexpected end of the line, want %s", wanted)
	}
	return fmt.Errorf("column %d: found %.12q, want %s", s.i+1, s.text[s.i:], wanted)
}

// object parses an object. It calls field for each name to parse the value.
func (s *scanner) object(field func(name string) error) error {
	if s.peek() != '{' {
		return s.unexpected("an object")
	}
	s.i++
	if s.peek() == '}' {
		s.i++
		return nil
	}
	for {
		name, err := s.string()
		if err != nil {
			return err
		}
		if s.peek() != ':' {
			return s.unexpected("a colon")
		}
		s.i++
		s.peek()
		if err := field(name); err != nil {
			return err
		}
		if done, err := s.more('}'); done || err != nil {
			return err
		}
	}
}

// more parses a comma, or the delimiter that ends the object or array.
func (s *scanner) more(end byte) (done bool, err error) {
	switch s.peek() {
	case ',':
		s.i++
		return false, nil
	case end:
		s.i++
		return true, nil
	}
	return false, s.unexpected("a comma or " + string(end))
}

// null parses null if it is next.
func (s *scanner) null() bool { return s.literal("null") }

func (s *scanner) literal(word string) bool {
	if !strings.HasPrefix(s.text[s.i:], word) {
		return false
	}
	s.i += len(word)
	return true
}

func (s *scanner) string() (string, error) {
	if s.peek() != '"' {
		return "", s.unexpected("a string")
	}
	start, escaped := s.i+1, false
	for i := start; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.i = i + 1
			if escaped {
				return s.unquote(start-1, i+1)
			}
			return s.text[start:i], nil
		case c == '\\':
			escaped = true
			i++
		case c < ' ':
			s.i = i
			return "", s.unexpected("a printable character, or the end of the string,")
		}
	}
	s.i = len(s.text)
	return "", s.unexpected(`the end of the string`)
}

// unquote decodes text[from:to], a string with escapes.
func (s *scanner) unquote(from, to int) (text string, err error) {
	if json.Unmarshal([]byte(s.text[from:to]), &text) != nil {
		return "", fmt.Errorf("column %d: invalid escape in the string %.40s", from+1, s.text[from:to])
	}
	return text, nil
}

// number parses a number and returns its text.
func (s *scanner) number() (string, error) {
	s.peek()
	rest := s.text[s.i:]
	text := rest[:len(rest)-len(strings.TrimLeft(rest, "+-.0123456789eE"))]
	if !json.Valid([]byte(text)) { // other texts of these characters are invalid
		return "", s.unexpected("a number")
	}
	s.i += len(text)
	return text, nil
}

// scalar parses any value. It returns the text of a string, number or boolean.
func (s *scanner) scalar() (text string, ok bool, err error) {
	switch {
	case s.peek() == '"':
		text, err = s.string()
		return text, err == nil, err
	case s.literal("true"):
		return "true", true, nil
	case s.literal("false"):
		return "false", true, nil
	case s.null():
		return "", false, nil
	case s.peek() == '{' || s.peek() == '[':
		return "", false, s.skip()
	}
	text, err = s.number()
	return text, err == nil, err
}

// skip skips an object or an array.
func (s *scanner) skip() error {
	decoder := json.NewDecoder(strings.NewReader(s.text[s.i:]))
	var value json.RawMessage
	if err := decoder.Decode(&value); err != nil {
		return fmt.Errorf("column %d: %w", s.i+1, err)
	}
	s.i += int(decoder.InputOffset())
	return nil
}
