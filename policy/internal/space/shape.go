// SPDX-License-Identifier: Apache-2.0

package space

import "strings"

// A Shape is a set of values with a common form: a suffix, or a template of path segments. It is a deterministic
// automaton over bytes, so that sets of shapes can be compared exactly.
type Shape struct {
	text   string // identifies the shape
	steps  []step // of a template
	suffix string // of the others
	fail   []int  // of suffix: the length of the longest proper border of each prefix
}

// A step of a template consumes one byte, or any number of bytes if it repeats.
type step struct {
	kind stepKind
	c    byte // of stepByte
}

type stepKind uint8

const (
	stepByte     stepKind = iota
	stepNotSlash          // one byte that is not a slash
	stepSegment           // any number of bytes up to a slash; a slash or the end follows
	stepRest              // all remaining bytes
)

// NewSuffix returns the shape of the values that end with suffix and have at least one byte before it.
func NewSuffix(suffix string) *Shape {
	s := &Shape{text: "*" + suffix, suffix: suffix, fail: make([]int, len(suffix)+1)}
	for i, border := 1, 0; i < len(suffix); i++ {
		for border > 0 && suffix[i] != suffix[border] {
			border = s.fail[border]
		}
		if suffix[i] == suffix[border] {
			border++
		}
		s.fail[i+1] = border
	}
	return s
}

// A TemplateBuilder builds the shape of a path template, part by part.
type TemplateBuilder struct {
	text  strings.Builder
	steps []step
}

// Literal adds text that the value has at this place.
func (b *TemplateBuilder) Literal(text string) {
	for i := range len(text) {
		b.steps = append(b.steps, step{stepByte, text[i]})
	}
	b.text.WriteString(text)
}

// Segment adds a segment that starts with prefix and is not empty. A slash or the end must follow.
func (b *TemplateBuilder) Segment(prefix string) {
	b.Literal(prefix)
	if prefix == "" {
		b.steps = append(b.steps, step{kind: stepNotSlash})
	}
	b.steps = append(b.steps, step{kind: stepSegment})
	b.text.WriteString("\x00s")
}

// Rest adds the rest of the path, which may be empty. Nothing can follow.
func (b *TemplateBuilder) Rest() {
	b.steps = append(b.steps, step{kind: stepRest})
	b.text.WriteString("\x00r")
}

// Shape returns the shape of the parts.
func (b *TemplateBuilder) Shape() *Shape { return &Shape{text: b.text.String(), steps: b.steps} }

// dead is the state of a value that no longer fits, regardless of the bytes that follow.
const dead = -1

// next returns the state after a byte. The first state is 0. The state of a template is the number of its complete
// steps. After the first byte, the state of a suffix is 1 plus the number of its bytes that the value ends with.
func (s *Shape) next(state int, c byte) int {
	if s.steps == nil {
		return s.nextOfSuffix(state, c)
	}
	if state == len(s.steps) {
		return dead
	}
	switch at := s.steps[state]; at.kind {
	case stepRest:
		return state
	case stepSegment:
		switch {
		case c != '/':
			return state
		case state+1 == len(s.steps):
			return dead
		}
		return state + 2
	case stepNotSlash:
		if c == '/' {
			return dead
		}
	case stepByte:
		if c != at.c {
			return dead
		}
	}
	return state + 1
}

func (s *Shape) nextOfSuffix(state int, c byte) int {
	if state == 0 {
		return 1
	}
	n := state - 1
	for n > 0 && (n == len(s.suffix) || s.suffix[n] != c) {
		n = s.fail[n]
	}
	if n < len(s.suffix) && s.suffix[n] == c {
		n++
	}
	return n + 1
}

// accepts reports whether a value that ends in this state has the shape.
func (s *Shape) accepts(state int) bool {
	switch {
	case state == dead:
		return false
	case s.steps == nil:
		return state == len(s.suffix)+1
	case state == len(s.steps):
		return true
	}
	last := s.steps[state].kind
	return state == len(s.steps)-1 && (last == stepSegment || last == stepRest)
}

// appendBytes appends the bytes that the shape distinguishes from all other bytes in this state.
func (s *Shape) appendBytes(dst []byte, state int) []byte {
	switch {
	case state == dead || s.steps != nil && state == len(s.steps):
		return dst
	case s.steps == nil:
		for n := state - 1; n >= 0; n = s.fail[n] {
			if n < len(s.suffix) {
				dst = append(dst, s.suffix[n])
			}
			if n == 0 {
				break
			}
		}
		return dst
	}
	switch at := s.steps[state]; at.kind {
	case stepByte:
		return append(dst, at.c)
	case stepNotSlash, stepSegment:
		return append(dst, '/')
	}
	return dst
}

// has reports whether a value has the shape.
func (s *Shape) has(value string) bool {
	state := 0
	for i := range len(value) {
		if state = s.next(state, value[i]); state == dead {
			return false
		}
	}
	return s.accepts(state)
}

// prefix returns a prefix of all values of the shape, without a byte 0xff at its end: see [WithPrefix].
func (s *Shape) prefix() string {
	var b strings.Builder
	for _, at := range s.steps {
		if at.kind != stepByte {
			break
		}
		b.WriteByte(at.c)
	}
	text := b.String()
	for strings.HasSuffix(text, string([]byte{0xff})) {
		text = text[:len(text)-1]
	}
	return text
}

// plainValue returns a readable value of the shape.
func (s *Shape) plainValue() string {
	if s.steps == nil {
		return "x" + s.suffix
	}
	var b strings.Builder
	for _, at := range s.steps {
		switch at.kind {
		case stepByte:
			b.WriteByte(at.c)
		case stepNotSlash:
			b.WriteByte('x')
		}
	}
	return b.String()
}
