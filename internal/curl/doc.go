// SPDX-License-Identifier: Apache-2.0

// Package curl reads requests as people have them at hand: a curl command line, as
// browsers copy it, the text of an HTTP request, or attributes as policies name them.
// It says what a front door would be asked for, so that a decision about the request
// can be explained.
//
// Nothing is run, no file is read and nobody is asked: what a command would take from
// elsewhere is a mistake or left out, and said so. Values that may be secrets are in
// what is read, and never in an error or a note.
package curl

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxBytes bounds the text of a request. Longer ones are refused.
const MaxBytes = 64 << 10

// An Error is a mistake in the text of a request.
type Error struct {
	Line, Column int    // of the place, from 1; Column counts characters
	Reason       string // what is wrong
	Hint         string // what to write instead; may be empty
}

// Error formats e on one line.
func (e *Error) Error() string {
	s := fmt.Sprintf("curl: line %d, column %d: %s", e.Line, e.Column, e.Reason)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// errorAt is a mistake at an offset of text.
func errorAt(text string, at int, reason, hint string) *Error {
	before := text[:min(max(at, 0), len(text))]
	start := strings.LastIndexByte(before, '\n') + 1
	return &Error{Line: 1 + strings.Count(before, "\n"), Column: 1 + utf8.RuneCountInString(before[start:]), Reason: reason, Hint: hint}
}

// checkText refuses what is no text that could be read.
func checkText(text string) error {
	switch {
	case len(text) > MaxBytes:
		return errorAt(text, MaxBytes, fmt.Sprintf("the text is longer than %d bytes", MaxBytes), "leave out the body of the request")
	case !utf8.ValidString(text):
		at := 0
		for i, r := range text {
			if r == utf8.RuneError {
				if _, n := utf8.DecodeRuneInString(text[i:]); n == 1 {
					at = i
					break
				}
			}
		}
		return errorAt(text, at, "the text is not UTF-8", "")
	case strings.IndexByte(text, 0) >= 0:
		return errorAt(text, strings.IndexByte(text, 0), "the text has a NUL", "")
	}
	return nil
}
