// SPDX-License-Identifier: Apache-2.0

package curl

import "strings"

// isCmd reports whether text is a command line of cmd.exe, as browsers copy it: with
// carets before quotes, or at the ends of lines.
func isCmd(text string) bool {
	if strings.Contains(text, ` ^"`) {
		return true
	}
	for line := range strings.Lines(text) {
		if strings.HasSuffix(strings.TrimRight(line, " \t\r\n"), " ^") {
			return true
		}
	}
	return false
}

// cmdWords splits text as Windows does: cmd.exe takes the carets away, and the program
// what is left apart.
func cmdWords(text string) (words []word, notes []string, err error) {
	plain, from := uncaret(text)
	var w strings.Builder
	begun, quoted, start, opened := false, false, 0, 0
	end := func() {
		if begun {
			words = append(words, word{w.String(), from[start]})
		}
		w.Reset()
		begun = false
	}
	for i := 0; i < len(plain); i++ {
		c := plain[i]
		if !quoted && strings.IndexByte(" \t\r\n", c) >= 0 {
			end()
			continue
		}
		if !begun {
			begun, start = true, i
		}
		slashes := 0
		for i+slashes < len(plain) && plain[i+slashes] == '\\' {
			slashes++
		}
		if slashes > 0 {
			// Backslashes count only before a quote: each two are one, and one that is
			// left makes it a letter.
			before := i+slashes < len(plain) && plain[i+slashes] == '"'
			if !before {
				w.WriteString(plain[i : i+slashes])
				i += slashes - 1
				continue
			}
			w.WriteString(strings.Repeat(`\`, slashes/2))
			i += slashes - 1
			if slashes%2 == 1 {
				w.WriteByte('"')
				i++
			}
			continue
		}
		switch {
		case c != '"':
			w.WriteByte(c)
		case quoted && i+1 < len(plain) && plain[i+1] == '"':
			w.WriteByte('"')
			i++
		default:
			quoted, opened = !quoted, i
		}
	}
	if quoted {
		return nil, nil, errorAt(text, from[opened], `the quote " is not closed`, "")
	}
	end()
	return words, nil, nil
}

// uncaret takes the carets away, and says where each byte of plain was, and its end. A
// caret is an ordinary letter between quotes that have none themselves.
func uncaret(text string) (plain string, from []int) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '"' {
			quoted = !quoted
		}
		if c == '^' && !quoted {
			rest := text[i+1:]
			switch {
			case strings.HasPrefix(rest, "\r\n"):
				i += 2
			case strings.HasPrefix(rest, "\n"):
				i++
			}
			// What follows is a letter, even if that is another end of line.
			if i++; i >= len(text) {
				break
			}
			c = text[i]
		}
		b.WriteByte(c)
		from = append(from, i)
	}
	return b.String(), append(from, len(text))
}
