// SPDX-License-Identifier: Apache-2.0

package yamltree

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// CheckText returns an error for the first byte that is not UTF-8 text, or nil.
func CheckText(data []byte) *SyntaxError {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		e := &SyntaxError{}
		switch {
		case r == utf8.RuneError && size == 1:
			e.Reason, e.Hint = fmt.Sprintf("the byte 0x%02X is not UTF-8", data[i]), "save the file as UTF-8"
		case r == '\r' && !bytes.HasPrefix(data[i:], []byte("\r\n")):
			e.Reason, e.Hint = "the file has a carriage return without a line feed", "end lines with a line feed"
		case r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f:
			e.Reason, e.Hint = fmt.Sprintf("the file has the control character 0x%02X", data[i]), "remove it"
		default:
			i += size
			continue
		}
		before := data[:i]
		e.Line = bytes.Count(before, []byte("\n")) + 1
		e.Column = utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
		return e
	}
	return nil
}

// tokenize returns the tokens of data, and the rune that replaces hidden colons. The lexer ends a key in a flow
// mapping at its first colon, as in {header:x-key: v}. In YAML, only a colon before a space or a flow indicator
// ends a key. tokenize hides the others.
func tokenize(data []byte) (token.Tokens, rune) {
	colon := '\ue000'
	for bytes.ContainsRune(data, colon) {
		colon++
	}
	var text strings.Builder
	text.Grow(len(data))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")) // the lexer counts some of them twice
	for i, c := range data {
		hidden := c == ':' && i > 0 && i+1 < len(data) &&
			!strings.ContainsRune(" \t\r\n\"'[]{},:", rune(data[i-1])) && !strings.ContainsRune(" \t\r\n[]{},:", rune(data[i+1]))
		if hidden {
			text.WriteRune(colon)
		} else {
			text.WriteByte(c)
		}
	}
	text.WriteByte('\n') // without it, the lexer does not fold the last lines
	return lexer.Tokenize(text.String()), colon
}

// checkTokens bounds the depth and the width of a tree before the recursive parser reads its tokens. It also finds
// errors that the parser ignores.
func checkTokens(tokens token.Tokens) *SyntaxError {
	type block struct{ column, fields int }
	var blocks []block     // the open block collections, by column
	var flows []token.Type // the end tokens of the open flow collections
	for _, tk := range tokens {
		at := tk.Position
		reason, hint := checkPlace(tk, len(flows) > 0)
		switch tk.Type {
		case token.MappingStartType:
			flows = append(flows, token.MappingEndType)
		case token.SequenceStartType:
			flows = append(flows, token.SequenceEndType)
		case token.MappingEndType, token.SequenceEndType:
			if len(flows) == 0 || flows[len(flows)-1] != tk.Type {
				reason, hint = fmt.Sprintf("%s has no opening bracket", tk.Value), "check brackets and quotes"
				break
			}
			flows = flows[:len(flows)-1]
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType:
			if len(flows) > 0 {
				break
			}
			column := at.Column
			if tk.Type == token.MappingValueType && tk.Prev != nil && tk.Prev.Position.Line == at.Line {
				column = tk.Prev.Position.Column
			}
			for len(blocks) > 0 && blocks[len(blocks)-1].column > column {
				blocks = blocks[:len(blocks)-1]
			}
			if len(blocks) == 0 || blocks[len(blocks)-1].column < column {
				blocks = append(blocks, block{column: column})
			}
			if blocks[len(blocks)-1].fields++; tk.Type == token.SequenceEntryType {
				blocks[len(blocks)-1].fields = 0
			}
		case token.DocumentHeaderType, token.DocumentEndType:
			blocks, flows = blocks[:0], flows[:0]
		case token.InvalidType:
			return nil // the parser reports the reason
		default:
			if tk.Indicator == token.NotIndicator && (tk.Prev == nil || tk.Prev.Type != token.LiteralType && tk.Prev.Type != token.FoldedType) {
				if plainReason, plainHint := checkPlain(tk, len(flows) > 0); plainReason != "" {
					reason, hint = plainReason, plainHint
				}
			}
		}
		switch {
		case reason != "":
		case len(flows)+len(blocks) > MaxDepth:
			reason = fmt.Sprintf("nested more than %d deep", MaxDepth)
		case len(blocks) > 0 && blocks[len(blocks)-1].fields > MaxFields:
			reason = fmt.Sprintf("the mapping has more than %d fields", MaxFields)
		}
		if reason != "" {
			return &SyntaxError{Line: at.Line, Column: max(at.Column, 1), Reason: reason, Hint: hint}
		}
	}
	return nil
}

var blockHeader = regexp.MustCompile(`^[|>]([1-9]?[-+]?|[-+][1-9])$`)

// checkPlace returns the error of a token at a position where YAML does not allow it, or where the parser deviates
// from YAML.
func checkPlace(tk *token.Token, inFlow bool) (reason, hint string) {
	before := tk.Prev
	for before != nil && before.Type == token.CommentType {
		before = before.Prev
	}
	switch {
	case tk.Type == token.MergeKeyType && strings.TrimSpace(tk.Origin) != tk.Value: // the lexer drops the letters before it
		return "a key must not end with <<", "put it in quotes"
	case (tk.Type == token.LiteralType || tk.Type == token.FoldedType) && !blockHeader.MatchString(tk.Value):
		return "did not find expected comment or line break", "write | or >, optionally with an indentation and - or +"
	case tk.Type == token.MappingKeyType:
		return "a key that begins with ? is not supported", "write it as KEY: VALUE"
	case tk.Type == token.SequenceEntryType && inFlow:
		return "block sequence entries are not allowed in this context", "separate the values in brackets by commas"
	case before != nil && before.Type == token.SequenceEntryType && !inFlow && before.Position.Line < tk.Position.Line &&
		tk.Position.Column <= before.Position.Column && tk.Type != token.SequenceEntryType && tk.Type != token.CommentType && tk.Type != token.DocumentEndType && tk.Type != token.DocumentHeaderType:
		return "the previous list entry is empty", "give it a value, or remove its dash"
	case before == nil || before.Type != token.MappingValueType && before.Type != token.SequenceEntryType:
		return "", ""
	case inFlow:
		key := before.Prev
		quoted := key != nil && (key.Type == token.SingleQuoteType || key.Type == token.DoubleQuoteType || !isValue(key))
		if !quoted && isValue(tk) && before.Position.Line == tk.Position.Line && before.Position.Column+1 == tk.Position.Column {
			return "did not find expected blank after ':'", "put a space after the colon, or put a key with colons in quotes"
		}
	case !beginsValue(tk):
		return "", ""
	case before.Position.Line < tk.Position.Line && tk.Position.Column <= parentColumn(before):
		return "did not find expected indentation", "indent a value deeper than its key"
	}
	return "", ""
}

func beginsValue(tk *token.Token) bool {
	switch tk.Type {
	case token.MappingStartType, token.SequenceStartType:
		return true
	case token.CommentType, token.AnchorType, token.TagType:
		return false
	}
	return isValue(tk) && (tk.Next == nil || tk.Next.Type != token.MappingValueType)
}

func parentColumn(tk *token.Token) int {
	if tk.Type == token.MappingValueType && tk.Prev != nil && tk.Prev.Position.Line == tk.Position.Line {
		return tk.Prev.Position.Column
	}
	return tk.Position.Column
}

// fold returns the value of a plain scalar (YAML 1.2, section 6.5): a line break becomes a space, and each blank
// line a line feed.
func fold(text string) string {
	var b strings.Builder
	breaks := 0
	for i, line := range strings.Split(text, "\n") {
		line = strings.Trim(line, " \t")
		switch {
		case line == "":
			breaks++
			continue
		case breaks > 0:
			b.WriteString(strings.Repeat("\n", breaks))
		case i > 0:
			b.WriteByte(' ')
		}
		breaks = 0
		b.WriteString(line)
	}
	return b.String()
}

// checkPlain returns the error in a plain scalar. The lexer allows more characters than YAML, reads past a missing
// comma or colon, and folds some lines incorrectly.
func checkPlain(tk *token.Token, inFlow bool) (reason, hint string) {
	text := strings.TrimSpace(tk.Origin)
	switch i := strings.IndexAny(text, "[]{},"); {
	case text == "":
	case text == "?" || strings.HasPrefix(text, "? ") || strings.HasPrefix(text, "?\n"):
		return "a key that begins with ? is not supported", "write it as KEY: VALUE"
	case strings.Contains(text, " #") || strings.Contains(text, "\n#"):
		return "a value without quotes contains a comment", "move the comment, or put the value in quotes"
	case fold(text) != tk.Value && strings.Contains(text, "\n"):
		return "a value without quotes has several lines", "put it in quotes, or use | or >"
	case strings.Contains(text, ": ") || strings.Contains(text, ":\n") || strings.HasSuffix(text, ":"):
		return "mapping values are not allowed in this context", "check the indentation, and quote a value that contains a colon"
	case inFlow && i >= 0:
		return fmt.Sprintf("did not find expected ',' before %c", text[i]), "check brackets, and quote a value that contains brackets"
	case strings.Contains(text, "\t"):
		return "a value without quotes contains a tab", "put it in quotes, or use spaces"
	case strings.IndexByte("%@`,[]{}|>", text[0]) >= 0:
		return fmt.Sprintf("found character %c that cannot start any token", text[0]), "put the value in quotes"
	}
	return "", ""
}

var hints = []struct{ says, hint string }{
	{"cannot start any token", "indent with spaces: YAML allows no tabs there"},
	{"tab ", "indent with spaces: YAML allows no tabs there"},
	{"invalid key", "a key must be a plain word, not a list, a mapping or an alias"},
	{"map key-value is pre-defined", "check the indentation, and quote a value that contains a colon"},
	{"mapping value is not allowed", "check the indentation, and quote a value that contains a colon"},
	{"could not find", "it begins here; the error may be on a later line: check brackets, quotes and indentation"},
	{"must be specified", "check brackets, quotes and indentation"},
	{"non-map value is specified", "check the indentation, and that a colon follows the key"},
}

func newSyntaxError(err error) *SyntaxError {
	var e interface {
		error
		GetMessage() string
		GetToken() *token.Token
	}
	if !errors.As(err, &e) {
		return &SyntaxError{Line: 1, Column: 1, Reason: "the structure cannot be parsed"}
	}
	made := &SyntaxError{Line: 1, Column: 1, Reason: strings.ReplaceAll(e.GetMessage(), " '\t'", "")}
	if tk := e.GetToken(); tk != nil && tk.Position != nil {
		made.Line, made.Column = max(tk.Position.Line, 1), max(tk.Position.Column, 1)
	}
	for _, h := range hints {
		if strings.Contains(made.Reason, h.says) {
			made.Hint = h.hint
			break
		}
	}
	return made
}
