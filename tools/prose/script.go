// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

// scriptTexts returns the comments and the string literals of two or more words in JavaScript.
func scriptTexts(text string) []fragment {
	s := scanner{text: text, line: 1}
	s.code(false)
	return s.found
}

func styleComments(text string) []fragment {
	var all []fragment
	line, end := 1, 0
	for _, m := range blockComment.FindAllStringSubmatchIndex(text, -1) {
		line += strings.Count(text[end:m[0]], "\n")
		all = append(all, fragment{line: line, text: unindent(text[m[2]:m[3]])})
		line += strings.Count(text[m[0]:m[1]], "\n")
		end = m[1]
	}
	return all
}

var (
	blockComment = regexp.MustCompile(`(?s)/\*(.*?)\*/`)
	// An expression ends before these: a slash behind it divides.
	operandEnd = regexp.MustCompile(`(?:[\w$)\]}'"` + "`" + `])$`)
	keywordEnd = regexp.MustCompile(`\b(?:return|typeof|case|in|of)$`)
	regexBody  = regexp.MustCompile(`^/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*`)
)

// A scanner finds the comments and literals of JavaScript.
type scanner struct {
	text     string
	at, line int
	comment  int // the line of the last line comment, which the next one continues
	found    []fragment
}

// code scans to the end, or in a template literal to the brace that closes an expression.
func (s *scanner) code(inTemplate bool) {
	depth := 0
	start := s.at // of the code since the last comment
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch c := rest[0]; {
		case strings.HasPrefix(rest, "//"):
			s.lineComment()
			start = s.at
			continue
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/")
			if end < 0 {
				end = len(rest) - 2
			}
			s.add(s.line, unindent(rest[2:end]))
			s.skip(end + 2)
			continue
		case c == '/':
			before := strings.TrimRight(s.text[start:s.at], " \t\n")
			if m := regexBody.FindString(rest); m != "" && (!operandEnd.MatchString(before) || keywordEnd.MatchString(before)) {
				s.skip(len(m))
				continue
			}
		case c == '\'' || c == '"' || c == '`':
			s.literal(c)
			continue
		case c == '{':
			depth++
		case c == '}' && depth == 0 && inTemplate:
			return
		case c == '}':
			depth--
		}
		s.skip(1)
	}
}

func (s *scanner) lineComment() {
	comment, _, _ := strings.Cut(s.text[s.at+2:], "\n")
	words := strings.TrimPrefix(comment, " ")
	alone := strings.TrimSpace(s.text[strings.LastIndexByte(s.text[:s.at], '\n')+1:s.at]) == ""
	if alone && s.comment == s.line-1 && len(s.found) > 0 {
		s.found[len(s.found)-1].text += "\n" + words
	} else {
		s.add(s.line, words)
	}
	if alone {
		s.comment = s.line
	}
	s.skip(2 + len(comment))
}

// literal scans a string or a template. Its expressions become "x".
func (s *scanner) literal(quote byte) {
	line := s.line
	var b strings.Builder
	s.skip(1)
	for s.at < len(s.text) && s.text[s.at] != quote {
		switch {
		case s.text[s.at] == '\\' && s.at+1 < len(s.text):
			if c := s.text[s.at+1]; c == 'n' || c == 't' {
				b.WriteByte(' ')
			} else {
				b.WriteByte(c)
			}
			s.skip(2)
		case quote == '`' && strings.HasPrefix(s.text[s.at:], "${"):
			s.skip(2)
			s.code(true)
			s.skip(1)
			b.WriteByte('x')
		default:
			b.WriteByte(s.text[s.at])
			s.skip(1)
		}
	}
	s.skip(1)
	if isProse(b.String()) {
		s.add(line, b.String())
	}
}

func (s *scanner) add(line int, text string) {
	s.found = append(s.found, fragment{line: line, text: text})
}

func (s *scanner) skip(n int) {
	end := min(s.at+n, len(s.text))
	s.line += strings.Count(s.text[s.at:end], "\n")
	s.at = end
}
