// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"bytes"
	"strings"
)

// A wildcard is a composite key with asterisks. Each asterisk stands for any number of characters, also none.
type wildcard struct {
	first, last string   // the text before the first asterisk and after the last one
	middle      [][]byte // the texts between the asterisks
	node        *node
}

func newWildcard(n *node) wildcard {
	parts := strings.Split(n.composite, "*")
	w := wildcard{first: parts[0], last: parts[len(parts)-1], node: n}
	for _, part := range parts[1 : len(parts)-1] {
		w.middle = append(w.middle, []byte(part))
	}
	return w
}

// matches reports whether text matches the wildcard.
func (w *wildcard) matches(text []byte) bool {
	if len(text) < len(w.first)+len(w.last) || string(text[:len(w.first)]) != w.first || string(text[len(text)-len(w.last):]) != w.last {
		return false
	}
	text = text[len(w.first) : len(text)-len(w.last)]
	for _, part := range w.middle {
		at := bytes.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}
