// SPDX-License-Identifier: Apache-2.0

package requestpath

import (
	"bytes"
	"unicode/utf8"
)

type parser struct {
	text       string
	sent       bool // text is as sent, with escapes and possibly a query
	keepParams bool
	keepSlash  bool // an escaped slash and a "\" do not end a segment

	path    []byte // result so far; segments end with a slash
	segment int    // start of the last segment in path
	params  int    // start of its parameters in path; 0 if none

	dots  bool // there is a dot segment
	empty bool // there is an empty segment
	slash bool // there is an escaped slash or a "\"
	odd   bool // there is a spelling that servers interpret differently
	wrong bool // the target is invalid, or ends early for some servers
	high  bool // there are unescaped non-ASCII bytes
}

func (r *parser) isDisputed() bool { return r.wrong || r.dots && (r.odd || r.empty) }

func (r *parser) read() string {
	r.path = append(make([]byte, 0, len(r.text)+1), '/')
	r.segment = 1
	i := 0
	if i < len(r.text) && r.text[0] == '/' {
		i++
	}
	for ; i < len(r.text); i++ {
		c, escaped := r.text[i], false
		if r.sent {
			switch {
			case c == '#':
				r.wrong = true
				fallthrough
			case c == '?':
				r.text = r.text[:i]
				continue
			case c == '%':
				if c, escaped = unescape(r.text[i:]); escaped {
					i += 2
				} else {
					r.wrong = true
				}
			case c >= utf8.RuneSelf:
				r.high = true
			}
		}
		r.add(c, escaped)
	}
	r.endSegment(true)
	if r.high && !utf8.ValidString(r.text) {
		r.wrong = true
	}
	return string(r.path)
}

func (r *parser) add(c byte, escaped bool) {
	switch c {
	case '\\', '/':
		if c == '\\' || escaped {
			r.odd, r.slash = true, true
			if r.keepSlash {
				r.path = append(r.path, '\\') // which no other path has
				return
			}
		}
		r.endSegment(false)
	case ';':
		r.odd = true
		if r.params == 0 {
			r.params = len(r.path)
		}
		r.path = append(r.path, c)
	default:
		r.odd = r.odd || c == '.' && escaped
		r.wrong = r.wrong || c == 0
		r.path = append(r.path, c)
	}
}

func (r *parser) endSegment(last bool) {
	name := r.path[r.segment:]
	if r.params > 0 {
		name = r.path[r.segment:r.params]
	}
	switch {
	case len(name) == 0 && !last:
		r.empty = true
		r.path = r.path[:r.segment]
	case string(name) == ".":
		r.dots = true
		r.path = r.path[:r.segment]
	case string(name) == "..":
		r.dots = true
		if r.segment > 1 {
			r.segment = bytes.LastIndexByte(r.path[:r.segment-1], '/') + 1
		}
		r.path = r.path[:r.segment]
	default:
		if !r.keepParams {
			r.path = r.path[:r.segment+len(name)]
		}
		if !last {
			r.path = append(r.path, '/')
		}
	}
	r.segment, r.params = len(r.path), 0
}

// unescape returns the byte of the escape at the start of s, or "%" and false if there is none.
func unescape(s string) (c byte, ok bool) {
	if len(s) < 3 {
		return s[0], false
	}
	high, ok1 := unhex(s[1])
	low, ok2 := unhex(s[2])
	if !ok1 || !ok2 {
		return s[0], false
	}
	return high<<4 | low, true
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
