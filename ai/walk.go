// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// A walker reads JSON in pieces of any size. It keeps no text: it follows the members that a [tree] lists, and skips
// everything else. It accepts some invalid JSON. It reads numbers and short strings into facts, and counts texts.
//
// Its speed comes from bytes.IndexByte: a string takes one call, whatever its length. In an ignored container, only
// strings and brackets matter.
type walker struct {
	tree  tree
	facts facts
	keys  keys // of exact nodes

	// onEnd is called at the end of each object at the root: a JSON body, an event, an element of a root array.
	onEnd func()
	ended bool // the last token was such an end

	// text, if not nil, receives the decoded text.
	text       *[]byte
	textBefore int // its length before the data of a source

	state   state
	node    uint8 // of the innermost followed container
	value   uint8 // of the next value
	object  bool  // the container is an object
	wantKey bool  // the next string is a key
	stack   [maxFollowed]container
	depth   int // containers in stack

	ignored int  // containers within the first ignored one
	deep    bool // their strings and scalars are text

	escape  escape
	high    rune   // the previous character of a text, if it is the first of two surrogates
	hex     uint32 // of the current \u escape
	pending [maxCapture + 1]byte
	length  int // of pending, maxCapture + 1 if it is too long
}

// maxFollowed bounds the depth of followed containers, which are few in all formats.
const maxFollowed = 24

// maxCapture bounds keys, numbers and captured strings that a walker understands.
const maxCapture = 256

type container struct {
	node   uint8
	object bool
}

// A state is the token that the last piece ended in.
type state uint8

const (
	betweenTokens state = iota
	inKey
	inSkipped
	inCaptured
	inText
	inScalar
)

// An escape is the position within an escape sequence of a string.
type escape uint8

const (
	noEscape escape = iota
	afterBackslash
	afterU // plus the number of digits
)

// reset prepares for the next document, whatever the state of the last one.
func (w *walker) reset() {
	w.state, w.escape, w.high = betweenTokens, noEscape, 0
	w.depth, w.ignored, w.length = 0, 0, 0
	w.node, w.value, w.object, w.wantKey = rootNode, rootNode, false, false
	w.facts.reset()
}

// isAtRoot reports whether the last document is complete, so that no reset is necessary.
func (w *walker) isAtRoot() bool {
	return w.depth == 0 && w.ignored == 0 && w.state == betweenTokens && w.ended
}

// inRootArray reports whether the document is an array.
func (w *walker) inRootArray() bool {
	return w.depth == 1 && !w.object || w.depth > 1 && !w.stack[1].object
}

// feed reads the next piece.
func (w *walker) feed(p []byte) {
	for i := 0; i < len(p); {
		i = w.feedToken(p, i)
	}
}

func (w *walker) feedToken(p []byte, i int) int {
	switch w.state {
	case inText:
		return w.readText(p, i)
	case inSkipped:
		return w.skipString(p, i)
	case inKey, inCaptured:
		return w.readString(p, i)
	case inScalar:
		return w.readScalar(p, i)
	}
	if w.ignored > 0 {
		return w.readIgnored(p, i)
	}
	return w.readStructure(p, i)
}

// feedObject reads up to the end of the next object at the root, or all of p. It returns the number of bytes.
func (w *walker) feedObject(p []byte) int {
	w.ended = false
	i := 0
	for i < len(p) && !w.ended {
		i = w.feedToken(p, i)
	}
	return i
}

// readStructure reads the tokens of followed containers up to a token of another state.
func (w *walker) readStructure(p []byte, i int) int {
	for i < len(p) {
		c := p[i]
		switch c {
		case '"':
			if w.wantKey {
				if i = w.readKey(p, i+1); w.state != betweenTokens {
					return i
				}
				continue
			}
			if i = w.startString(p, i+1); w.state != betweenTokens {
				return i
			}
			continue
		case ',':
			w.wantKey = w.object
			if !w.object {
				w.value = w.node
			}
		case ':', ' ', '\t', '\r', '\n':
		case '{', '[':
			w.open(c == '{')
			if w.ignored > 0 {
				return i + 1
			}
		case '}', ']':
			if w.closeContainer(); w.ended {
				return i + 1
			}
		default:
			if !isScalar[c] {
				break // no token starts with it
			}
			end := i + 1
			for end < len(p) && isScalar[p[end]] {
				end++
			}
			f := w.tree[w.value].field
			if f != fNothing && (end == len(p) || end-i > maxCapture) {
				w.state, w.length = inScalar, 0
				return i
			}
			if f != fNothing {
				w.facts.setScalar(f, p[i:end], true)
			}
			i = end
			continue
		}
		i++
	}
	return i
}

// readKey reads a key that begins at i. It is the fast way of the usual case: the whole key is in p.
func (w *walker) readKey(p []byte, i int) int {
	w.wantKey = false
	end := indexQuote(p[i:])
	if end < 0 || end > 0 && p[i+end-1] == '\\' {
		w.state, w.length = inKey, 0
		return i
	}
	w.value = w.tree.child(w.node, p[i:i+end])
	if w.tree[w.node].exact {
		w.checkKey(p[i : i+end])
	}
	i += end + 1
	if i < len(p) && p[i] == ':' {
		i++
	}
	return i
}

// startString begins a string value at i, and reads it if it is skipped and ends within p.
func (w *walker) startString(p []byte, i int) int {
	switch f := w.tree[w.value].field; {
	case f == fNothing:
		end := indexQuote(p[i:])
		if end > 0 && p[i+end-1] != '\\' || end == 0 {
			return i + end + 1
		}
		w.state = inSkipped
	case f == fText || f == fDeep:
		w.state, w.high = inText, 0
	case f == fMedia:
		w.facts.startString(f)
		w.state = inSkipped
	case f == fSourceData:
		w.facts.startString(f)
		w.state, w.high = inText, 0
		if w.text != nil {
			w.textBefore = len(*w.text)
		}
	default:
		end := indexQuote(p[i:])
		if end >= 0 && end <= maxCapture && bytes.IndexByte(p[i:i+end], '\\') < 0 {
			w.facts.setString(f, p[i:i+end], true)
			return i + end + 1
		}
		w.state, w.length = inCaptured, 0
	}
	return i
}

// readIgnored reads an ignored container up to its end or to a string that does not end within p.
func (w *walker) readIgnored(p []byte, i int) int {
	for i < len(p) {
		c := p[i]
		i++
		if w.deep {
			w.countScalar(c)
		}
		switch c {
		case '"':
			if w.deep {
				w.state, w.high = inText, 0
				return i
			}
			end := indexQuote(p[i:])
			if end < 0 || end > 0 && p[i+end-1] == '\\' {
				w.state = inSkipped
				return i
			}
			i += end + 1
		case '{', '[':
			w.ignored++
		case '}', ']':
			if w.ignored--; w.ignored == 0 {
				return i
			}
		}
	}
	return i
}

// countScalar counts a byte between the strings of a text. A number counts its bytes, and minScalar at least.
func (w *walker) countScalar(c byte) {
	switch w.length++; {
	case !isScalar[c]:
		w.length = 0
	case w.length == 1:
		w.facts.addChars(minScalar)
	case w.length > minScalar:
		w.facts.addChars(1)
	}
}

func (w *walker) open(object bool) {
	n := &w.tree[w.value]
	if n.field != fNothing {
		w.facts.openContainer(n.field)
	}
	if n.leaf || w.depth == maxFollowed {
		w.ignored, w.deep, w.length = 1, n.field == fDeep, 0
		return
	}
	w.stack[w.depth] = container{w.node, w.object}
	w.depth++
	w.node, w.object, w.wantKey = w.value, object, object
}

func (w *walker) closeContainer() {
	closed, object := w.node, w.object
	w.ended = object && closed == rootNode && w.depth > 0
	if w.depth == 0 {
		return
	}
	w.depth--
	w.node, w.object = w.stack[w.depth].node, w.stack[w.depth].object
	w.value, w.wantKey = w.node, false
	if object && w.tree[closed].field == fSource {
		w.closeSource()
	}
	if w.ended && w.onEnd != nil {
		w.onEnd()
	}
}

// closeSource removes data other than plain text from the text.
func (w *walker) closeSource() {
	if w.text != nil && !w.facts.plain && w.facts.data.Bytes > 0 {
		*w.text = (*w.text)[:w.textBefore]
	}
	w.facts.closeSource()
}

// skipString skips the rest of a string.
func (w *walker) skipString(p []byte, i int) int {
	if w.escape == afterBackslash {
		w.escape = noEscape
		i++
	}
	for i < len(p) {
		end := indexQuote(p[i:])
		piece := p[i:]
		if end >= 0 {
			piece = piece[:end]
		}
		escaped := endsEscaped(piece)
		i += len(piece) + 1
		switch {
		case end < 0:
			if escaped {
				w.escape = afterBackslash
			}
			return len(p)
		case !escaped:
			w.state = betweenTokens
			return i
		}
	}
	return i
}

// endsEscaped reports whether the byte behind p is escaped. p must not begin with an escaped byte.
func endsEscaped(p []byte) bool {
	n := 0
	for n < len(p) && p[len(p)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// readString reads a key or a captured string into pending.
func (w *walker) readString(p []byte, i int) int {
	for ; i < len(p); i++ {
		c := p[i]
		switch {
		case w.escape == afterBackslash:
			w.escape = noEscape
		case c == '\\':
			w.escape = afterBackslash
		case c == '"':
			w.endString()
			return i + 1
		}
		w.keep(c)
	}
	return i
}

func (w *walker) endString() {
	raw, ok := w.captured()
	if w.state == inKey {
		w.value = ignoredNode
		if ok {
			w.value = w.tree.child(w.node, raw)
		}
		if w.tree[w.node].exact {
			w.checkKey(w.pending[:min(w.length, len(w.pending))])
		}
	} else if w.state == inCaptured {
		w.facts.setString(w.tree[w.value].field, raw, ok)
	}
	w.state = betweenTokens
}

// readScalar reads a number, true, false or null. Its end is the first byte that cannot be part of it, which the
// caller reads next.
func (w *walker) readScalar(p []byte, i int) int {
	for ; i < len(p); i++ {
		if !isScalar[p[i]] {
			raw, ok := w.captured()
			w.facts.setScalar(w.tree[w.value].field, raw, ok)
			w.state = betweenTokens
			return i
		}
		w.keep(p[i])
	}
	return i
}

// isScalar has the bytes that can be part of a number or a literal.
var isScalar = func() (set [256]bool) {
	for _, c := range "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-." {
		set[c] = true
	}
	return set
}()

func (w *walker) keep(c byte) {
	if w.length <= maxCapture {
		w.pending[w.length] = c
	}
	w.length = min(w.length+1, maxCapture+1)
}

// captured returns the bytes of pending and whether they are all.
func (w *walker) captured() ([]byte, bool) {
	return w.pending[:min(w.length, maxCapture)], w.length <= maxCapture
}

// indexQuote is bytes.IndexByte for a quote. Most strings are short: it looks at 16 bytes without a call.
func indexQuote(p []byte) int {
	const (
		ones   = 0x0101010101010101
		highs  = 0x80 * ones
		quotes = '"' * ones
	)
	if len(p) < 16 {
		return bytes.IndexByte(p, '"')
	}
	// A byte of word is 0 where p has a quote. The lowest bit of found belongs to the first one.
	word := binary.LittleEndian.Uint64(p) ^ quotes
	if found := (word - ones) &^ word & highs; found != 0 {
		return bits.TrailingZeros64(found) / 8
	}
	word = binary.LittleEndian.Uint64(p[8:]) ^ quotes
	if found := (word - ones) &^ word & highs; found != 0 {
		return bits.TrailingZeros64(found)/8 + 8
	}
	if at := bytes.IndexByte(p[16:], '"'); at >= 0 {
		return at + 16
	}
	return -1
}
