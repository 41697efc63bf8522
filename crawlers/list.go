// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// A list finds the patterns that match a text. Regular expressions are slow one by one, and slower as one alternation.
// But each pattern requires a literal: a text that all its matches contain, or one of several such texts. The list
// searches all literals together, and runs an expression only if its literal occurs.
type list struct {
	starts [1 << startBits / 64]uint64 // the hashes of the first bytes of literals, as a set of bits
	byHead map[[headBytes]byte][]candidate
}

// headBytes is the number of first bytes that the search looks up. A shorter literal is an error.
const (
	headBytes = 3
	startBits = 14
)

type candidate struct {
	literal string
	exp     *regexp.Regexp // nil if the literal is the whole pattern
}

func newList(patterns []string) (*list, error) {
	l := &list{byHead: map[[headBytes]byte][]candidate{}}
	for i, p := range patterns {
		parsed, err := syntax.Parse(p, syntax.Perl)
		if err != nil {
			return nil, fmt.Errorf("crawlers: pattern %d, %q: %w", i+1, p, err)
		}
		literals := requiredLiterals(parsed.Simplify())
		if len(literals) == 0 {
			return nil, fmt.Errorf("crawlers: pattern %d, %q: requires no literal of %d bytes", i+1, p, headBytes)
		}
		var exp *regexp.Regexp
		if parsed.Op != syntax.OpLiteral {
			exp = regexp.MustCompile(p)
		}
		for _, text := range literals {
			head := [headBytes]byte([]byte(text))
			l.byHead[head] = append(l.byHead[head], candidate{text, exp})
			h := hashHead(text)
			l.starts[h/64] |= 1 << (h % 64)
		}
	}
	return l, nil
}

func hashHead(s string) uint32 {
	return (uint32(s[0])<<16 | uint32(s[1])<<8 | uint32(s[2])) * 0x9e3779b1 >> (32 - startBits)
}

func (l *list) match(s string) bool {
	var tried []*regexp.Regexp // without a match; a literal that occurs often must not repeat its expression
	for i := 0; i+headBytes <= len(s); i++ {
		h := hashHead(s[i:])
		if l.starts[h/64]>>(h%64)&1 == 0 {
			continue
		}
		for _, c := range l.byHead[[headBytes]byte([]byte(s[i:i+headBytes]))] {
			if !strings.HasPrefix(s[i:], c.literal) || slices.Contains(tried, c.exp) {
				continue
			}
			if c.exp == nil || c.exp.MatchString(s) {
				return true
			}
			tried = append(tried, c.exp)
		}
	}
	return false
}

// requiredLiterals returns literals of at least headBytes bytes. Every match of r contains one of them. It returns
// nothing if it finds no such literals.
func requiredLiterals(r *syntax.Regexp) []string {
	switch r.Op {
	case syntax.OpLiteral:
		if s := string(r.Rune); len(s) >= headBytes && r.Flags&syntax.FoldCase == 0 {
			return []string{s}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return requiredLiterals(r.Sub[0])
	case syntax.OpConcat:
		var best []string
		for _, part := range r.Sub {
			if found := requiredLiterals(part); len(found) > 0 && (best == nil || shortest(found) > shortest(best)) {
				best = found
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, part := range r.Sub {
			found := requiredLiterals(part)
			if len(found) == 0 {
				return nil
			}
			all = append(all, found...)
		}
		return all
	}
	return nil
}

func shortest(texts []string) int {
	n := len(texts[0])
	for _, s := range texts[1:] {
		n = min(n, len(s))
	}
	return n
}
