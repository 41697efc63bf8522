// SPDX-License-Identifier: Apache-2.0

package yamltree

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/token"
)

// Mask hides the comments in data, and the values of keys for which show returns false. The result keeps lines and
// columns, so a file with secrets can be shown. The file may be invalid.
func Mask(data []byte, show func(key string) bool) string {
	var text [][]rune
	for line := range strings.SplitSeq(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n") {
		text = append(text, []rune(line))
	}
	tokens, colon := tokenize(replaceTabs(data))
	type key struct {
		column int
		hidden bool
	}
	var keys []key   // the keys of the block mappings around a token
	var flows []bool // for the open flow collections: whether they are hidden
	hidden := true   // before the first key
	for i, tk := range tokens {
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			flows = append(flows, hidden)
		case token.MappingEndType, token.SequenceEndType:
			if last := len(flows) - 1; last >= 0 {
				hidden, flows = flows[last], flows[:last]
			}
		case token.CollectEntryType: // in [a: 1, b], only the first item is the value of a key
			if last := len(flows) - 1; last >= 0 {
				hidden = flows[last]
			}
		case token.MappingValueType:
			if i == 0 {
				break
			}
			name := tokens[i-1]
			hidden = hidden && isInside(name) || !show(strings.ReplaceAll(name.Value, string(colon), ":"))
			if len(flows) == 0 {
				keys = slices.DeleteFunc(keys, func(k key) bool { return k.column >= keyColumn(name) })
				keys = append(keys, key{keyColumn(name), hidden})
			}
		case token.SequenceEntryType: // it belongs to the key to its left
			keys = slices.DeleteFunc(keys, func(k key) bool { return k.column > tk.Position.Column })
			hidden = len(keys) == 0 || keys[len(keys)-1].hidden
		}
		isKey := i+1 < len(tokens) && tokens[i+1].Type == token.MappingValueType && !isInside(tk)
		switch {
		case tk.Type == token.InvalidType: // the token may contain the rest of the file
			from := token.Position{Line: tk.Position.Line + 1, Column: 1}
			if hidden && i > 0 {
				from = placeAfter(tokens[i-1])
			}
			hide(text, from, token.Position{Line: len(text) + 1, Column: 1})
		case tk.Type == token.CommentType || hidden && !isKey && isValue(tk):
			from, to := token.Position{Line: 1, Column: 1}, token.Position{Line: len(text) + 1, Column: 1}
			switch {
			case tk.Type == token.CommentType:
				from = *tk.Position
			case i > 0:
				from = placeAfter(tokens[i-1])
			}
			if i+1 < len(tokens) {
				to = *tokens[i+1].Position
			}
			hide(text, from, to)
		}
	}
	var b strings.Builder
	for i, line := range text {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.TrimRight(string(line), " "))
	}
	return b.String()
}

// replaceTabs returns data with spaces instead of tabs, except in indentations, where tabs are errors. The lexer
// miscounts lines after a tab in quotes.
func replaceTabs(data []byte) []byte {
	made, indented := slices.Clone(data), false
	for i, c := range made {
		switch {
		case c == '\n':
			indented = false
		case c == '\t' && indented:
			made[i] = ' '
		case c != ' ' && c != '\t':
			indented = true
		}
	}
	return made
}

func keyColumn(name *token.Token) int {
	at := name
	for p := name.Prev; p != nil && p.Position.Line == name.Position.Line; p = p.Prev {
		if p.Type == token.AnchorType || p.Type == token.TagType {
			at = p
		} else if p.Prev == nil || p.Prev.Type != token.AnchorType {
			break
		}
	}
	return at.Position.Column
}

// isInside reports whether a token follows a colon on its line. Such a token is part of a value, not a key.
func isInside(tk *token.Token) bool {
	return tk.Prev != nil && tk.Prev.Type == token.MappingValueType && tk.Prev.Position.Line == tk.Position.Line
}

func isValue(tk *token.Token) bool {
	switch tk.Type {
	case token.MappingValueType, token.MappingKeyType, token.SequenceEntryType, token.CollectEntryType, token.LiteralType, token.FoldedType,
		token.MappingStartType, token.MappingEndType, token.SequenceStartType, token.SequenceEndType, token.DocumentHeaderType, token.DocumentEndType:
		return false
	}
	return true
}

// placeAfter returns the position after a structural token of one character, or the position of any other token.
func placeAfter(tk *token.Token) token.Position {
	at := *tk.Position
	if !isValue(tk) {
		at.Column++
	}
	return at
}

// hide replaces the characters between two positions by … and spaces.
func hide(text [][]rune, from, to token.Position) {
	marked := false
	for line := max(from.Line, 1); line <= min(to.Line, len(text)); line++ {
		runes := text[line-1]
		begin, end := 0, len(runes)
		if line == from.Line {
			begin = max(from.Column-1, 0)
		}
		if line == to.Line {
			end = min(max(to.Column-1, 0), len(runes))
		}
		for i := begin; i < end; i++ {
			switch {
			case runes[i] == ' ':
			case !marked:
				runes[i], marked = '…', true
			default:
				runes[i] = ' '
			}
		}
	}
}
