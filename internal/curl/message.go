// SPDX-License-Identifier: Apache-2.0

package curl

import (
	"strings"
	"unicode/utf8"
)

// A Message is what is sent: a request without its body.
type Message struct {
	Method string  // as it is sent, such as "GET"
	Target string  // path and query, such as "/v1/x?tenant=a", or "*"
	Host   string  // of the Host header; empty for none
	Header []Field // the other headers, in their order
	Notes  []string
}

// A Field is a header.
type Field struct {
	Name, Value string

	// Assumed says that the command does not have it: curl sends it by itself.
	Assumed bool
}

// note notes s, once.
func (m *Message) note(s string) {
	for _, n := range m.Notes {
		if n == s {
			return
		}
	}
	m.Notes = append(m.Notes, s)
}

// has reports whether m has a header called name.
func (m *Message) has(name string) bool {
	for _, f := range m.Header {
		if strings.EqualFold(f.Name, name) {
			return true
		}
	}
	return false
}

// isToken reports whether s can be a method or the name of a header: RFC 9110,
// section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// badValue says what is wrong with the value of a header, "" for nothing.
func badValue(s string) string {
	if !utf8.ValidString(s) {
		return "the value is not UTF-8"
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return "the value has a control character"
		}
	}
	return ""
}

// badTarget says what is wrong with a path and query, "" for nothing. A target that
// is no path is left to who reads its path.
func badTarget(s string) string {
	if !utf8.ValidString(s) {
		return "the URL is not UTF-8"
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == ' ' || c == '\t':
			return "the URL has a space"
		case c < ' ' || c == 0x7f:
			return "the URL has a control character"
		}
	}
	return ""
}

// blanks are what may stand around the value of a header.
const blanks = " \t"
