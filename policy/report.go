// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxErrors bounds how many mistakes are reported: a last one says that
	// there are more.
	maxErrors = 1000

	// maxShownBytes is how much of an offending value is shown.
	maxShownBytes = 60
)

// A report collects the mistakes of one file.
type report struct {
	found []placed
	more  int
}

// A placed error knows its offset in the file, to sort by.
type placed struct {
	Error
	at int64
}

// add reports that the value n is wrong.
func (r *report) add(n *node, reason, hint string) {
	r.put(n, Error{Path: n.path, Value: shown(n), Reason: reason, Hint: hint})
}

// absent reports something about the place n that is not the fault of its value.
func (r *report) absent(n *node, reason, hint string) {
	r.put(n, Error{Path: n.path, Reason: reason, Hint: hint})
}

func (r *report) put(n *node, e Error) {
	if len(r.found) >= maxErrors {
		r.more++
		return
	}
	r.found = append(r.found, placed{Error: e, at: n.at})
}

// errors returns what was found in the order of the file, nil for nothing.
func (r *report) errors() error {
	if len(r.found) == 0 {
		return nil
	}
	slices.SortStableFunc(r.found, func(a, b placed) int { return int(a.at - b.at) })
	var es Errors
	for _, p := range r.found {
		es = append(es, p.Error)
	}
	if r.more > 0 {
		es = append(es, Error{Reason: fmt.Sprintf("too many mistakes: %d more are not shown", r.more)})
	}
	return es
}

// shown is n as JSON, cut to a readable length.
func shown(n *node) string {
	switch n.kind {
	case isNull:
		return "null"
	case isList:
		return fmt.Sprintf("a list of %d", len(n.list))
	case isObject:
		return fmt.Sprintf("an object of %d", len(n.fields))
	case isText:
		text, rest := cut(n.text)
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(text); err != nil {
			return ""
		}
		return strings.TrimSuffix(strings.TrimSpace(b.String()), `"`) + rest + `"`
	}
	text, rest := cut(n.text)
	return text + rest
}

// cut shortens s and returns what stands for the rest.
func cut(s string) (head, rest string) {
	if len(s) <= maxShownBytes {
		return s, ""
	}
	end := maxShownBytes
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end], "…"
}
