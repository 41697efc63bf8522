// SPDX-License-Identifier: Apache-2.0

package respapi

import "bytes"

// inline parses a command that is one line of words, as people type it into telnet. It returns no arguments if the
// line is empty or has not arrived.
func (p *parser) inline() ([][]byte, protocolError) {
	i := bytes.IndexByte(p.buf[p.pos+p.searched:p.end], '\n')
	if i < 0 {
		if p.searched = p.end - p.pos; p.searched > p.lineBound() {
			return nil, errLongInline
		}
		return nil, ""
	}
	length := p.searched + i
	if length > p.lineBound() {
		return nil, errLongInline
	}
	line := bytes.TrimSuffix(p.buf[p.pos:p.pos+length], []byte("\r"))
	p.words = p.words[:0]
	if err := p.split(line); err != "" {
		return nil, err
	}
	p.pos, p.searched = p.pos+length+1, 0
	return p.arguments(), ""
}

// split finds the words of a line, and removes quotes and escapes in place.
func (p *parser) split(line []byte) protocolError {
	most, tooMany := MaxArguments, errCount
	if !p.known {
		most, tooMany = maxStrangerArguments, errStrangerArguments
	}
	if end := bytes.IndexByte(line, 0); end >= 0 {
		line = line[:end] // as in Redis, whose lines are C strings
	}
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return ""
		}
		if len(p.words) == most {
			return tooMany
		}
		length, rest, ok := unquote(line[i:])
		if !ok {
			return errQuotes
		}
		p.words = append(p.words, word{i, length})
		i += rest
	}
}

// unquote moves the first word to the begin of text without its quotes and escapes. It returns the length of the word,
// and the number of bytes that it had before. As in Redis, a quote may start within a word, but after its end
// only a space may follow.
func unquote(text []byte) (length, read int, ok bool) {
	i, quote := 0, byte(0)
	for ; i < len(text); i++ {
		b := text[i]
		switch {
		case quote == 0 && (b == ' ' || b == '\t' || b == '\r'): // other spaces are only skipped between words
			return length, i, true
		case quote == 0 && (b == '"' || b == '\''):
			quote = b
			continue
		case quote != 0 && b == quote:
			return length, i + 1, i+1 == len(text) || isSpace(text[i+1])
		case quote == '\'' && b == '\\' && i+1 < len(text) && text[i+1] == '\'':
			i++
			b = '\''
		case quote == '"' && b == '\\' && i+1 < len(text):
			if i+3 < len(text) && text[i+1] == 'x' && isHex(text[i+2]) && isHex(text[i+3]) {
				b = hexDigit(text[i+2])<<4 | hexDigit(text[i+3])
				i += 3
				break
			}
			i++
			b = unescape(text[i])
		}
		text[length] = b
		length++
	}
	return length, i, quote == 0
}

func unescape(b byte) byte {
	switch b {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return b
}

func isSpace(b byte) bool { return b == ' ' || '\t' <= b && b <= '\r' }

func isHex(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F'
}

func hexDigit(b byte) byte {
	switch {
	case b <= '9':
		return b - '0'
	case b <= 'F':
		return b - 'A' + 10
	}
	return b - 'a' + 10
}
