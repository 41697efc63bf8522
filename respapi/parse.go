// SPDX-License-Identifier: Apache-2.0

package respapi

import "bytes"

// Bounds of one command. A larger command ends the connection.
const (
	// MaxArguments bounds the words of a command.
	MaxArguments = 1024

	// MaxArgumentBytes bounds each word.
	MaxArgumentBytes = 64 << 10

	// MaxCommandBytes bounds all words of a command together, including their lengths.
	MaxCommandBytes = 128 << 10

	// maxLineBytes bounds an inline command, and the line with a length.
	maxLineBytes = 64 << 10
)

// Bounds until the client has authenticated. Redis has the first two.
const (
	maxStrangerArguments     = 10
	maxStrangerArgumentBytes = 16 << 10
	maxStrangerCommandBytes  = 32 << 10
)

// A protocolError is the text of an error that ends the connection. The texts equal the ones of Redis, because clients
// and their tests compare them.
type protocolError string

const (
	errLongCount         protocolError = "too big mbulk count string"
	errLongLength        protocolError = "too big bulk count string"
	errLongInline        protocolError = "too big inline request"
	errLongCommand       protocolError = "too big multibulk request"
	errCount             protocolError = "invalid multibulk length"
	errLength            protocolError = "invalid bulk length"
	errQuotes            protocolError = "unbalanced quotes in request"
	errStrangerArguments protocolError = "unauthenticated multibulk length"
	errStrangerLength    protocolError = "unauthenticated bulk length"
)

func errNoDollar(got byte) protocolError {
	return protocolError("expected '$', got '" + string([]byte{got}) + "'")
}

// A parser splits the bytes of a client into commands: arrays of bulk strings, or inline commands. It never parses
// a byte twice, so that a slow sender costs no more than a fast one. It holds at most the bytes of one incomplete
// command. It allocates memory for bytes that have arrived, never for an announced length.
type parser struct {
	buf      []byte // buf[start:end] has arrived and is not executed
	start    int    // of the current command
	pos      int    // the next byte to parse
	searched int    // bytes after pos that contain no end of the line
	end      int

	missing int    // arguments of the current array that have not arrived; 0 outside of an array
	length  int    // of the next argument; -1 if unknown
	words   []word // of the current command
	args    [][]byte

	known bool // the client has authenticated
}

// A word is an argument's place after parser.start.
type word struct{ at, length int }

// next returns the next command, or nil if the rest of it has not arrived. Arguments are valid until the next call
// of space. After an error the parser must not be used.
func (p *parser) next() ([][]byte, protocolError) {
	for p.missing == 0 {
		p.start = p.pos
		if p.pos == p.end {
			return nil, ""
		}
		if p.buf[p.pos] != '*' {
			args, err := p.inline()
			if len(args) > 0 || err != "" || p.start == p.pos {
				return args, err
			}
			continue // an empty line
		}
		line, err := p.line(errLongCount)
		if line == nil {
			return nil, err
		}
		n, ok := parseLength(line[1:])
		switch {
		case !ok || n > MaxArguments:
			return nil, errCount
		case n > maxStrangerArguments && !p.known:
			return nil, errStrangerArguments
		case n > 0:
			p.missing, p.length, p.words = n, -1, p.words[:0]
		}
	}
	if err := p.bulks(); p.missing > 0 {
		return nil, err
	}
	return p.arguments(), ""
}

// bulks parses the bulk strings of an array that have arrived.
func (p *parser) bulks() protocolError {
	for p.missing > 0 {
		if p.length < 0 {
			if p.pos < p.end && p.buf[p.pos] != '$' {
				return errNoDollar(p.buf[p.pos])
			}
			line, err := p.line(errLongLength)
			if line == nil {
				return err
			}
			n, ok := parseLength(line[1:])
			most := MaxCommandBytes
			if !p.known {
				most = maxStrangerCommandBytes
			}
			switch {
			case !ok || n < 0 || n > MaxArgumentBytes:
				return errLength
			case n > maxStrangerArgumentBytes && !p.known:
				return errStrangerLength
			case p.pos-p.start+n > most:
				return errLongCommand
			}
			p.length = n
		}
		if p.end-p.pos < p.length+2 {
			return ""
		}
		p.words = append(p.words, word{p.pos - p.start, p.length})
		p.pos += p.length + 2 // Redis does not compare the line end either
		p.length = -1
		p.missing--
	}
	return ""
}

// line returns the bytes before the next carriage return, and skips two bytes after them. It returns nil if they
// have not arrived.
func (p *parser) line(tooLong protocolError) ([]byte, protocolError) {
	i := bytes.IndexByte(p.buf[p.pos+p.searched:p.end], '\r')
	if i < 0 {
		if p.searched = p.end - p.pos; p.searched > p.lineBound() {
			return nil, tooLong
		}
		return nil, ""
	}
	p.searched += i
	if p.searched > p.lineBound() {
		return nil, tooLong
	}
	if p.pos+p.searched+1 == p.end {
		return nil, ""
	}
	line := p.buf[p.pos : p.pos+p.searched]
	p.pos, p.searched = p.pos+p.searched+2, 0
	return line, ""
}

func (p *parser) lineBound() int {
	if p.known {
		return maxLineBytes
	}
	return maxStrangerArgumentBytes
}

func (p *parser) arguments() [][]byte {
	p.args = p.args[:0]
	for _, w := range p.words {
		at := p.start + w.at
		p.args = append(p.args, p.buf[at:at+w.length:at+w.length])
	}
	return p.args
}

// space returns memory for the next bytes. It returns nil if the buffer has reached its bound.
func (p *parser) space() []byte {
	if p.start > 0 {
		copy(p.buf, p.buf[p.start:p.end])
		p.pos, p.end, p.start = p.pos-p.start, p.end-p.start, 0
	}
	if p.end == len(p.buf) {
		const most = MaxCommandBytes + maxLineBytes + 4 // the parser fails before
		size := min(2*len(p.buf), most)
		if size <= len(p.buf) {
			return nil
		}
		grown := make([]byte, size)
		copy(grown, p.buf)
		p.buf = grown
	}
	return p.buf[p.end:]
}

// isEmpty reports whether the parser holds no bytes of an incomplete command.
func (p *parser) isEmpty() bool { return p.start == p.end && p.missing == 0 }

// resize replaces the buffer of an empty parser by one of the usual size.
func (p *parser) resize() {
	p.buf, p.start, p.pos, p.end = make([]byte, bufferBytes), 0, 0, 0
}

// parseLength parses a decimal number as strictly as Redis does: no plus sign, no leading zero.
func parseLength(text []byte) (int, bool) {
	if n, ok := parseInt(text); ok && int64(int32(n)) == n {
		return int(n), true
	}
	return 0, false
}

func parseInt(text []byte) (int64, bool) {
	digits, negative := text, false
	if len(text) > 1 && text[0] == '-' {
		digits, negative = text[1:], true
	}
	if len(digits) == 0 || len(digits) > len("9223372036854775808") || digits[0] == '0' && (negative || len(digits) > 1) {
		return 0, false
	}
	n := uint64(0) // 19 digits fit
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + uint64(d-'0')
	}
	switch {
	case negative && n <= 1<<63:
		return -int64(n), true
	case !negative && n < 1<<63:
		return int64(n), true
	}
	return 0, false
}
