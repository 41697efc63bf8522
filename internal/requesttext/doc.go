// SPDX-License-Identifier: Apache-2.0

// Package requesttext parses requests that people write: the text of an HTTP request, or the attributes of
// policies. The result has the attributes that an endpoint would read, so that a decision about the request can be
// explained.
//
// The result contains secret values, but errors and notes never do.
package requesttext

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxBytes bounds the text of a request.
const MaxBytes = 64 << 10

// An Error is an error in the text of a request, with its place.
type Error struct {
	Line, Column int    // the place, from 1; Column counts characters
	Reason       string // the cause
	Hint         string // the remedy; may be empty
}

// Error formats e on one line.
func (e *Error) Error() string {
	s := fmt.Sprintf("requesttext: line %d, column %d: %s", e.Line, e.Column, e.Reason)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// ErrorAt returns an error at an offset of text.
func ErrorAt(text string, at int, reason, hint string) *Error {
	before := text[:min(max(at, 0), len(text))]
	start := strings.LastIndexByte(before, '\n') + 1
	return &Error{Line: 1 + strings.Count(before, "\n"), Column: 1 + utf8.RuneCountInString(before[start:]), Reason: reason, Hint: hint}
}

// CheckText rejects text that is too long, contains a NUL, or is not UTF-8.
func CheckText(text string) error {
	if len(text) > MaxBytes {
		return ErrorAt(text, MaxBytes, fmt.Sprintf("the text is longer than %d bytes", MaxBytes), "leave out the body of the request")
	}
	if valid := strings.ToValidUTF8(text, "\x00"); valid != text {
		at := 0
		for text[at] == valid[at] {
			at++
		}
		return ErrorAt(text, at, "the text is not UTF-8", "")
	}
	if at := strings.IndexByte(text, 0); at >= 0 {
		return ErrorAt(text, at, "the text contains a NUL character", "")
	}
	return nil
}

// IsToken reports whether s can be a method or the name of a header (RFC 9110, section 5.6.2).
func IsToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// CheckHeader returns the error in a header, or "".
func CheckHeader(name, value string) string {
	switch {
	case !IsToken(name):
		return "invalid header name"
	case !utf8.ValidString(value):
		return fmt.Sprintf("the value of header %s is not UTF-8", name)
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return fmt.Sprintf("the value of header %s has a control character", name)
	}
	return ""
}

// CheckTarget returns the error in a URL or in a path and query, or "".
func CheckTarget(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "the URL is not UTF-8"
	case strings.ContainsAny(s, " \t"):
		return "the URL has a space"
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "the URL has a control character"
	}
	return ""
}

// Shorten shortens text for a message.
func Shorten(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
