// SPDX-License-Identifier: Apache-2.0

package ai

import "bytes"

// An sse has the position within a stream of server-sent events. Events end with an empty line, lines with \n, \r or
// \r\n. The data of an event can have several lines. See the HTML standard, section 9.2.
type sse struct {
	line    lineState
	matched int     // bytes of "data:" that the line starts with
	empty   bool    // the last line end completed an event
	length  int     // of the event's data
	head    [6]byte // of the event's data, to find [DONE]
}

type lineState uint8

const (
	lineStart lineState = iota // or within the name of the field
	lineSpace                  // before the space behind the colon
	lineData
	lineOther
	lineCR // behind a \r, which a \n can follow
)

const dataField = "data:"

// readSSE feeds the data of the events to the walker.
func (r *Reader) readSSE(p []byte) {
	s := &r.sse
	ends := lineEnds{p: p, lf: -1, cr: -1}
	for i := 0; i < len(p); {
		c := p[i]
		if r.stopped && (s.line != lineCR || c != '\n') {
			return
		}
		switch s.line {
		case lineCR:
			s.line = lineStart
			if c == '\n' {
				i++
				if s.empty {
					r.eventEnd = i
				}
			}
		case lineStart:
			switch {
			case c == '\n' || c == '\r':
				i++
				r.endLine(c, i)
			case s.matched == 0 && i+len(dataField) < len(p) && string(p[i:i+len(dataField)]) == dataField:
				i += len(dataField)
				s.line = lineSpace
			case c == dataField[s.matched]:
				i++
				if s.matched++; s.matched == len(dataField) {
					s.line = lineSpace
				}
			case s.matched == 0 && c == 0xEF, s.matched == 0 && c == 0xBB, s.matched == 0 && c == 0xBF:
				i++ // a byte order mark
			default:
				s.line = lineOther
			}
		case lineSpace:
			s.line = lineData
			if c == ' ' {
				i++
			}
		case lineData, lineOther:
			end := ends.find(i)
			if s.line == lineData && end > i {
				r.readData(p[i:end])
			}
			if i = end; i < len(p) {
				i++
				r.endLine(p[end], i)
			}
		}
	}
}

func (r *Reader) readData(p []byte) {
	s := &r.sse
	if s.length < len(s.head) {
		copy(s.head[s.length:], p)
	}
	s.length += len(p)
	r.walker.feed(p)
}

// endLine ends a line with the byte c, behind which the position is.
func (r *Reader) endLine(c byte, position int) {
	s := &r.sse
	s.empty = s.line == lineStart && s.matched == 0
	if r.walker.state == inScalar {
		r.walker.feed(newline) // the next line does not continue a number
	}
	s.line, s.matched = lineStart, 0
	if c == '\r' {
		s.line = lineCR
	}
	if !s.empty {
		return
	}
	defer r.endEvent(position)
	if s.length == 0 {
		return
	}
	if s.length == len(s.head) && string(s.head[:]) == "[DONE]" {
		r.progress.ended, r.progress.done = true, true
		r.final = r.current.seen&usageFields != 0
	}
	s.length = 0
	if !r.walker.isAtRoot() {
		r.walker.reset()
	}
}

var newline = []byte("\n")

// lineEnds finds the ends of lines, and searches no byte twice.
type lineEnds struct {
	p      []byte
	lf, cr int // the next ones, len(p) without one
}

// find returns the position of the first line end at or after i.
func (l *lineEnds) find(i int) int {
	if l.lf < i {
		l.lf = next(l.p, i, '\n')
	}
	if l.cr < i {
		l.cr = next(l.p, i, '\r')
	}
	return min(l.lf, l.cr)
}

func next(p []byte, i int, c byte) int {
	if at := bytes.IndexByte(p[i:], c); at >= 0 {
		return i + at
	}
	return len(p)
}
