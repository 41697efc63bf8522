// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
)

// A language is the syntax of a script.
type language int

const (
	lua language = iota
	sql
)

// A kind is the kind of a script's token.
type kind int

const (
	word kind = iota
	number
	text // a string or a quoted name
	symbol
)

// A scriptToken is a token of a script. It is at source[from:to].
type scriptToken struct {
	kind
	from, to int
	value    string
}

// scan returns the tokens of a script, without comments. The body of a PostgreSQL function in dollar quotes is code: its
// quotes are symbols. A placeholder of a template, such as {schema}, belongs to the word around it.
func scan(source []byte, in language) []scriptToken {
	var all []scriptToken
	for at := 0; at < len(source); {
		if c := source[at]; c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			at++
			continue
		}
		if end := endOfComment(source, at, in); end > at {
			at = end
			continue
		}
		k, end := scanOne(source, at, in)
		all = append(all, scriptToken{k, at, end, string(source[at:end])})
		at = end
	}
	return all
}

func scanOne(source []byte, at int, in language) (kind, int) {
	c := source[at]
	switch {
	case c == '\'' || c == '"':
		return text, endOfString(source, at, in)
	case in == lua && longBracket(source, at) >= 0:
		return text, endOfLong(source, at)
	case in == sql && c == '$':
		return scanDollar(source, at)
	case isDigit(c):
		return number, endOfNumber(source, at)
	case isWordByte(c) || in == sql && isPlaceholder(source, at):
		return word, endOfWord(source, at, in)
	case in == sql && strings.IndexByte(operatorBytes, c) >= 0:
		return symbol, endOfOperator(source, at)
	}
	for _, long := range [][]string{lua: {"...", "..", "==", "~=", "<=", ">="}, sql: {":=", "::", ".."}}[in] {
		if bytes.HasPrefix(source[at:], []byte(long)) {
			return symbol, at + len(long)
		}
	}
	return symbol, at + 1
}

// endOfComment returns the end of the comment at a position, or the position.
func endOfComment(source []byte, at int, in language) int {
	switch rest := source[at:]; {
	case bytes.HasPrefix(rest, []byte("--")):
		if in == lua && longBracket(source, at+2) >= 0 {
			return endOfLong(source, at+2)
		}
		return at + indexOrEnd(rest, "\n")
	case in == sql && bytes.HasPrefix(rest, []byte("/*")):
		depth, end := 1, at+2
		for depth > 0 && end < len(source) {
			switch {
			case bytes.HasPrefix(source[end:], []byte("/*")):
				depth, end = depth+1, end+2
			case bytes.HasPrefix(source[end:], []byte("*/")):
				depth, end = depth-1, end+2
			default:
				end++
			}
		}
		return end
	}
	return at
}

// endOfString returns the end of a quoted string. PostgreSQL doubles a quote inside. Lua escapes it, and so does a
// string of PostgreSQL with the prefix E.
func endOfString(source []byte, at int, in language) int {
	quote := source[at]
	escapes := in == lua || at > 0 && (source[at-1] == 'E' || source[at-1] == 'e')
	for end := at + 1; end < len(source); end++ {
		switch {
		case escapes && source[end] == '\\':
			end++
		case source[end] != quote:
		case in == sql && end+1 < len(source) && source[end+1] == quote:
			end++
		default:
			return end + 1
		}
	}
	return len(source)
}

// longBracket returns the number of equals signs of a Lua bracket such as [==[, or -1.
func longBracket(source []byte, at int) int {
	if at >= len(source) || source[at] != '[' {
		return -1
	}
	n := 0
	for at+1+n < len(source) && source[at+1+n] == '=' {
		n++
	}
	if at+1+n < len(source) && source[at+1+n] == '[' {
		return n
	}
	return -1
}

func endOfLong(source []byte, at int) int {
	return at + indexAfter(source[at:], "]"+strings.Repeat("=", longBracket(source, at))+"]")
}

// scanDollar scans a parameter such as $1, or the mark of a dollar quote.
func scanDollar(source []byte, at int) (kind, int) {
	end := at + 1
	if end < len(source) && isDigit(source[end]) {
		return word, endOfNumber(source, end)
	}
	for end < len(source) && isWordByte(source[end]) {
		end++
	}
	return symbol, min(end+1, len(source))
}

func endOfNumber(source []byte, at int) int {
	end := at
	for end < len(source) && (isWordByte(source[end]) || source[end] == '.' && !bytes.HasPrefix(source[end:], []byte(".."))) {
		end++
	}
	return end
}

func endOfWord(source []byte, at int, in language) int {
	for at < len(source) {
		switch {
		case isWordByte(source[at]):
			at++
		case in == sql && isPlaceholder(source, at):
			at += indexAfter(source[at:], "}")
		default:
			return at
		}
	}
	return at
}

const operatorBytes = "+-*/<>=~!@#%^&|`?"

// endOfOperator returns the end of a PostgreSQL operator. Only an operator with certain characters ends with a sign: in
// a<-b, the operator is <.
func endOfOperator(source []byte, at int) int {
	end := at
	for end < len(source) && strings.IndexByte(operatorBytes, source[end]) >= 0 && (end == at || endOfComment(source, end, sql) == end) {
		end++
	}
	for end > at+1 && (source[end-1] == '+' || source[end-1] == '-') && !bytes.ContainsAny(source[at:end], "~!@#%^&|`?") {
		end--
	}
	return end
}

func isPlaceholder(source []byte, at int) bool {
	if source[at] != '{' {
		return false
	}
	name := source[at+1 : at+indexOrEnd(source[at:], "}")]
	return len(name) > 0 && len(bytes.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz")) == 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWordByte(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c) || c >= 0x80
}

func indexOrEnd(source []byte, what string) int {
	if n := bytes.Index(source, []byte(what)); n >= 0 {
		return n
	}
	return len(source)
}

func indexAfter(source []byte, what string) int {
	return min(indexOrEnd(source, what)+len(what), len(source))
}
