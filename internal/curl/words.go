// SPDX-License-Identifier: Apache-2.0

package curl

import (
	"fmt"
	"strings"
)

// A word is an argument of a command.
type word struct {
	text string
	at   int // where it begins in the text
}

// A splitter splits a command line into words as a POSIX shell does, and bash where
// it has $'…'. It expands nothing.
type splitter struct {
	text  string
	i     int
	words []word
	notes []string

	word   strings.Builder
	start  int
	begun  bool // a word has, even if it is empty
	quoted bool // part of it is
	skip   bool // the next word is where output goes
}

// shellWords splits text.
func shellWords(text string) (words []word, notes []string, err error) {
	s := splitter{text: text}
	for s.i < len(s.text) {
		stop, err := s.step()
		if err != nil {
			return nil, nil, err
		}
		if stop {
			break
		}
	}
	s.end()
	return s.words, s.notes, nil
}

// step reads what comes next. stop says that the command is over.
func (s *splitter) step() (stop bool, err error) {
	switch c := s.text[s.i]; {
	case c == ' ' || c == '\t' || c == '\r':
		s.end()
		s.i++
	case c == '\n':
		s.end()
		return s.newline()
	case c == '#' && !s.begun:
		if end := strings.IndexByte(s.text[s.i:], '\n'); end >= 0 {
			s.i += end
		} else {
			s.i = len(s.text)
		}
	case c == '\\':
		return false, s.escape()
	case c == '\'':
		return false, s.single()
	case c == '"':
		return false, s.double()
	case c == '$' || c == '`':
		return false, s.dollar()
	case strings.IndexByte("|;&()", c) >= 0:
		return true, s.leave()
	case c == '<' || c == '>':
		s.redirect()
	default:
		s.add(c)
		s.i++
	}
	return false, nil
}

// begin begins a word where none has.
func (s *splitter) begin() {
	if !s.begun {
		s.begun, s.start = true, s.i
	}
}

func (s *splitter) add(c byte) {
	s.begin()
	s.word.WriteByte(c)
}

// end ends the word.
func (s *splitter) end() {
	if s.begun {
		if !s.skip {
			s.words = append(s.words, word{s.word.String(), s.start})
		}
		s.skip = false
	}
	s.word.Reset()
	s.begun, s.quoted = false, false
}

// newline ends the command; nothing but comments may follow.
func (s *splitter) newline() (stop bool, err error) {
	if len(s.words) == 0 {
		s.i++
		return false, nil
	}
	at := s.i
	for line := range strings.Lines(s.text[s.i:]) {
		if rest := strings.TrimSpace(line); rest != "" && rest[0] != '#' {
			at += strings.Index(line, rest)
			return true, errorAt(s.text, at, "the command ended with the line before", `end that line with a \ if it goes on here`)
		}
		at += len(line)
	}
	return true, nil
}

// escape reads a backslash outside of quotes.
func (s *splitter) escape() error {
	rest := s.text[s.i+1:]
	switch {
	case rest == "":
		s.i++ // a line that goes on nowhere
	case rest[0] == '\n':
		s.i += 2
	case strings.HasPrefix(rest, "\r\n"):
		s.i += 3
	case strings.Trim(rest, " \t\r\n") == "":
		s.i = len(s.text)
	default:
		s.begin()
		s.word.WriteByte(rest[0])
		s.i += 2
	}
	return nil
}

// single reads '…'.
func (s *splitter) single() error {
	end := strings.IndexByte(s.text[s.i+1:], '\'')
	if end < 0 {
		return errorAt(s.text, s.i, "the quote ' is not closed", "")
	}
	s.begin()
	s.quoted = true
	s.word.WriteString(s.text[s.i+1 : s.i+1+end])
	s.i += end + 2
	return nil
}

// double reads "…".
func (s *splitter) double() error {
	start := s.i
	s.begin()
	s.quoted = true
	for s.i++; s.i < len(s.text); {
		switch c := s.text[s.i]; {
		case c == '"':
			s.i++
			return nil
		case c == '\\' && s.i+1 < len(s.text):
			switch next := s.text[s.i+1]; next {
			case '$', '`', '"', '\\':
				s.word.WriteByte(next)
			case '\n':
			default:
				s.word.WriteByte(c)
				s.word.WriteByte(next)
			}
			s.i += 2
		case c == '$' || c == '`':
			if err := s.expansion(); err != nil {
				return err
			}
		default:
			s.word.WriteByte(c)
			s.i++
		}
	}
	return errorAt(s.text, start, `the quote " is not closed`, "")
}

// dollar reads a $ or a backtick outside of quotes.
func (s *splitter) dollar() error {
	switch rest := s.text[s.i:]; {
	case strings.HasPrefix(rest, "$'"):
		return s.ansi()
	case strings.HasPrefix(rest, `$"`):
		s.begin()
		s.i++
		return s.double()
	}
	return s.expansion()
}

// expansion reads what a shell would replace: it stays as it is.
func (s *splitter) expansion() error {
	rest := s.text[s.i:]
	if rest[0] == '`' || strings.HasPrefix(rest, "$(") {
		return errorAt(s.text, s.i, "a shell would run a command here", "write what it prints in its place")
	}
	n := 1
	if strings.HasPrefix(rest, "${") {
		if n = strings.IndexByte(rest, '}') + 1; n == 0 {
			return errorAt(s.text, s.i, "the { is not closed", "")
		}
	} else {
		for n < len(rest) && (rest[n] == '_' || '0' <= rest[n] && rest[n] <= '9' || 'a' <= rest[n]|0x20 && rest[n]|0x20 <= 'z') {
			n++
		}
	}
	s.begin()
	name := strings.NewReplacer("{", "", "}", "").Replace(rest[:n]) // which curl would take for several URLs
	s.word.WriteString(name)
	s.i += n
	if n > 1 {
		s.notes = append(s.notes, fmt.Sprintf("%s is taken as it stands: no shell puts a value in its place", clip(name)))
	}
	return nil
}

// leave ends the command at what belongs to the shell.
func (s *splitter) leave() error {
	s.end()
	rest := strings.TrimSpace(strings.TrimLeft(s.text[s.i:], "|;&()"))
	what := fmt.Sprintf("what stands behind %q is no part of the request", s.text[s.i:s.i+1])
	switch {
	case rest == "":
	case s.text[s.i] == '&' && s.i > 0 && strings.IndexByte(" \t\n&", s.text[s.i-1]) < 0:
		s.notes = append(s.notes, what+": put the URL in quotes if it goes on there")
	default:
		s.notes = append(s.notes, what)
	}
	return nil
}

// redirect leaves out where output goes, such as 2>/dev/null.
func (s *splitter) redirect() {
	if s.begun && !s.quoted && strings.Trim(s.word.String(), "0123456789") == "" {
		s.word.Reset()
		s.begun = false
	}
	s.end()
	for s.i < len(s.text) && strings.IndexByte("<>&|", s.text[s.i]) >= 0 {
		s.i++
	}
	s.skip = true
}

// clip shortens text that is shown.
func clip(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
