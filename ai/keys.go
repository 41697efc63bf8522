// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// keys are the known keys of a request so far. Parsers disagree about a key that occurs twice, and some read other spellings
// of a key as the same.
type keys struct {
	seen [4]uint64 // a bit for each node of the tree
	err  *Error    // the first ambiguous key
}

// checkKey checks a key of an exact node. w.value is its node.
func (w *walker) checkKey(raw []byte) {
	k := &w.keys
	if k.err != nil {
		return
	}
	if len(raw) > maxCapture {
		k.err = &Error{InvalidMember, fmt.Sprintf("the name of a member has more than %d bytes: shorten it", maxCapture)}
		return
	}
	if w.value == ignoredNode {
		if known := w.tree.resemble(w.node, raw); known != "" {
			k.err = &Error{InvalidMember, fmt.Sprintf("some servers read the member %q as %s: write it as %s", unquote(raw), known, known)}
		}
		return
	}
	word, bit := &k.seen[w.value/64], uint64(1)<<(w.value%64)
	if *word&bit != 0 {
		k.err = &Error{InvalidMember, unquote(raw) + " occurs twice: remove one of them"}
	}
	*word |= bit
}

// resemble returns the key of a child that some parsers read in raw, or "". encoding/json ignores the case. Others end a key at
// NUL or at an invalid character, or drop it.
func (t tree) resemble(parent uint8, raw []byte) string {
	n := &t[parent]
	if isPlain(raw) && n.lengths&(1<<len(raw)) == 0 {
		return ""
	}
	key := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, unquote(raw))
	for i := range n.children {
		if known := n.children[i].key; strings.EqualFold(key, known) {
			return known
		}
	}
	return ""
}

// isPlain reports whether a raw key has only printable ASCII and no escape sequences.
func isPlain(raw []byte) bool {
	return bytes.IndexFunc(raw, func(r rune) bool { return r <= ' ' || r >= 0x7F || r == '\\' }) < 0
}
