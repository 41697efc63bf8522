// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// A Text is the size of a text: decoded, without the escape sequences of JSON.
type Text struct {
	Bytes int64 // of its UTF-8
	Chars int64 // Unicode code points
}

func (t *Text) add(p []byte) {
	t.Bytes += int64(len(p))
	t.Chars += int64(len(p) - continuations(p))
}

// continuations returns the number of bytes 10xxxxxx, which start no character.
func continuations(p []byte) int {
	n := 0
	for ; len(p) >= 8; p = p[8:] {
		word := binary.LittleEndian.Uint64(p)
		n += bits.OnesCount64(word & ^(word << 1) & 0x8080808080808080)
	}
	for _, c := range p {
		if c&0xC0 == 0x80 {
			n++
		}
	}
	return n
}

// readText counts a text up to its end.
func (w *walker) readText(p []byte, i int) int {
	quote := i - 1 // the next quote at or after i, or len(p)
	for i < len(p) {
		if w.escape != noEscape {
			w.readEscape(p[i])
			i++
			continue
		}
		if quote < i {
			if quote = bytes.IndexByte(p[i:], '"') + i; quote < i {
				quote = len(p)
			}
		}
		piece := p[i:quote]
		if at := bytes.IndexByte(piece, '\\'); at >= 0 {
			piece = piece[:at]
			w.escape = afterBackslash
		}
		if len(piece) > 0 {
			w.high = 0
			w.addText(piece)
		}
		i += len(piece) + 1
		if w.escape == noEscape && quote < len(p) {
			w.state = betweenTokens
			if w.ignored == 0 && w.tree[w.value].field == fSourceData {
				w.facts.endData()
			}
			return i
		}
	}
	return min(i, len(p))
}

func (w *walker) addText(p []byte) {
	w.facts.text.add(p)
	if w.text != nil {
		*w.text = append(*w.text, p...)
	}
}

// readEscape reads one byte of an escape sequence.
func (w *walker) readEscape(c byte) {
	switch {
	case w.escape == afterBackslash && c == 'u':
		w.escape, w.hex = afterU, 0
		return
	case w.escape == afterBackslash:
		w.endEscape(unescapeByte(c))
		return
	}
	w.hex = w.hex<<4 | hexDigit(c)
	if w.escape++; w.escape == afterU+4 {
		w.endEscape(rune(w.hex))
	}
}

// endEscape counts an escaped character. Two surrogates are one character of 4 bytes.
func (w *walker) endEscape(r rune) {
	w.escape = noEscape
	if w.high != 0 && r >= 0xDC00 && r <= 0xDFFF {
		w.facts.text.Bytes++ // U+FFFD of the first one has 3
		if w.text != nil {
			*w.text = utf8.AppendRune((*w.text)[:len(*w.text)-utf8.RuneLen(utf8.RuneError)], utf16.DecodeRune(w.high, r))
		}
		w.high = 0
		return
	}
	if w.high = 0; r >= 0xD800 && r < 0xDC00 {
		w.high = r
	}
	var buffer [utf8.UTFMax]byte
	w.addText(utf8.AppendRune(buffer[:0], r))
}

func unescapeByte(c byte) rune {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return rune(c)
}

func hexDigit(c byte) uint32 {
	switch {
	case c >= '0' && c <= '9':
		return uint32(c - '0')
	case c >= 'a' && c <= 'f':
		return uint32(c - 'a' + 10)
	case c >= 'A' && c <= 'F':
		return uint32(c - 'A' + 10)
	}
	return 0
}
