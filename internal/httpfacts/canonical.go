// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"bytes"
	"encoding/json"
	"slices"
)

// maxCanonicalDepth bounds the nesting of canonical texts. Each level may copy the text within it.
const maxCanonicalDepth = 32

// canonicalJSON returns a JSON object with its members in order and without white space between tokens. Strings and numbers stay as
// they are spelled. It returns false for another text, and for one that is nested too deeply.
func canonicalJSON(text []byte) ([]byte, bool) {
	if len(text) == 0 || text[0] != '{' || !json.Valid(text) {
		return nil, false
	}
	dst, _ := appendCanonical(make([]byte, 0, len(text)), text, 0, maxCanonicalDepth)
	return dst, dst != nil
}

// A canonicalMember is a member of an object: a part of the canonical text, which begins with the name.
type canonicalMember struct{ start, colon, end int }

// appendCanonical appends the value of a valid text at i, and returns the position after it. It returns nil if the value has
// more than depth levels.
func appendCanonical(dst, text []byte, i, depth int) ([]byte, int) {
	i = skipSpace(text, i)
	if depth == 0 {
		return nil, i
	}
	switch text[i] {
	case '{':
		return appendCanonicalObject(dst, text, i+1, depth-1)
	case '[':
		dst = append(dst, '[')
		for i = skipSpace(text, i+1); text[i] != ']'; i = skipSpace(text, i) {
			if text[i] == ',' {
				dst = append(dst, ',')
				i++
			}
			if dst, i = appendCanonical(dst, text, i, depth-1); dst == nil {
				return nil, i
			}
		}
		return append(dst, ']'), i + 1
	}
	end := endOfScalar(text, i)
	return append(dst, text[i:end]...), end
}

func appendCanonicalObject(dst, text []byte, i, depth int) ([]byte, int) {
	var room [16]canonicalMember
	members := room[:0]
	dst = append(dst, '{')
	first := len(dst)
	for i = skipSpace(text, i); text[i] != '}'; i = skipSpace(text, i) {
		if text[i] == ',' {
			i = skipSpace(text, i+1)
		}
		m := canonicalMember{start: len(dst)}
		end := endOfScalar(text, i)
		dst = append(dst, text[i:end]...)
		m.colon = len(dst)
		dst = append(dst, ':')
		if dst, i = appendCanonical(dst, text, skipSpace(text, end)+1, depth); dst == nil {
			return nil, i
		}
		dst = append(dst, ',')
		m.end = len(dst)
		members = append(members, m)
	}
	name := func(m canonicalMember) []byte { return dst[m.start:m.colon] }
	byName := func(a, b canonicalMember) int { return bytes.Compare(name(a), name(b)) }
	if !slices.IsSortedFunc(members, byName) {
		slices.SortStableFunc(members, byName)
		old := slices.Clone(dst[first:])
		dst = dst[:first]
		for _, m := range members {
			dst = append(dst, old[m.start-first:m.end-first]...)
		}
	}
	return append(dst, '}'), i + 1
}

// endOfScalar returns the position after a string, a number or a word.
func endOfScalar(text []byte, i int) int {
	if text[i] != '"' {
		for i < len(text) && bytes.IndexByte([]byte(",]} \t\r\n"), text[i]) < 0 {
			i++
		}
		return i
	}
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && bytes.IndexByte([]byte(" \t\r\n"), text[i]) >= 0 {
		i++
	}
	return i
}
