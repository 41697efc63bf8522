// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxErrors bounds the reported errors. A final error counts the rest.
	maxErrors = 1000

	// MaxShownBytes bounds the part of an invalid value that an error shows.
	MaxShownBytes = 60
)

// An Error is one error in a document.
type Error struct {
	Path   string // JSON Pointer (RFC 6901) to the place
	Value  string // the invalid value as JSON, shortened; empty if no value is invalid
	Reason string // the cause
	Hint   string // the remedy; may be empty
}

// A Report collects the errors of one document.
type Report struct {
	found []placed
	more  int
}

type placed struct {
	Error
	at int64
}

// Add reports that the value n is invalid.
func (r *Report) Add(n *Node, reason, hint string) {
	r.add(n, Error{Path: n.Path, Value: FormatValue(n), Reason: reason, Hint: hint})
}

// AddAt reports an error at n that is not in the value of n.
func (r *Report) AddAt(n *Node, reason, hint string) {
	r.add(n, Error{Path: n.Path, Reason: reason, Hint: hint})
}

func (r *Report) add(n *Node, m Error) {
	if len(r.found) >= maxErrors {
		r.more++
		return
	}
	r.found = append(r.found, placed{m, n.At})
}

// Count returns the number of errors so far.
func (r *Report) Count() int { return len(r.found) }

// Errors returns all errors in the order of the document.
func (r *Report) Errors() []Error {
	slices.SortStableFunc(r.found, func(a, b placed) int { return int(a.at - b.at) })
	var all []Error
	for _, p := range r.found {
		all = append(all, p.Error)
	}
	if r.more > 0 {
		all = append(all, Error{Reason: fmt.Sprintf("too many errors: %d more are not shown", r.more)})
	}
	return all
}

// FormatValue returns n as JSON, shortened to a readable length.
func FormatValue(n *Node) string {
	switch n.Kind {
	case KindNull:
		return "null"
	case KindList:
		return fmt.Sprintf("a list of %d", len(n.List))
	case KindObject:
		return fmt.Sprintf("an object of %d", len(n.Fields))
	case KindText:
		text, rest := Cut(n.Text)
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(text); err != nil {
			return ""
		}
		return strings.TrimSuffix(strings.TrimSpace(b.String()), `"`) + rest + `"`
	}
	text, rest := Cut(n.Text)
	return text + rest
}

// Cut shortens s to a readable length. rest is "…" if s was longer.
func Cut(s string) (head, rest string) {
	if len(s) <= MaxShownBytes {
		return s, ""
	}
	end := MaxShownBytes
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end], "…"
}
