// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"encoding/binary"
	"math/bits"
)

// maxNesting bounds the nesting of requests. Deeper ones are invalid.
const maxNesting = 1024

// A nesting has a bit per open container: 1 for an object.
type nesting struct {
	depth   int
	objects [maxNesting / 64]uint64
}

func (n *nesting) push(object bool) {
	word, bit := n.depth/64, uint64(1)<<(n.depth%64)
	n.objects[word] &^= bit
	if object {
		n.objects[word] |= bit
	}
	n.depth++
}

func (n *nesting) inObject() bool {
	top := n.depth - 1
	return n.objects[top/64]>>(top%64)&1 == 1
}

// A validator checks that pieces of any size are one JSON value. It accepts what json.Valid accepts, up to maxNesting, and
// takes a fraction of its time for long strings. Its memory is constant.
type validator struct {
	open  nesting
	state expectation
	key   bool // the current string is a key
}

// An expectation is the state of a validator: what the next byte can be. The ones behind invalid are actions, which set the state.
type expectation uint8

const (
	wantValue expectation = iota
	wantFirstValue
	wantKey
	wantFirstKey
	wantColon
	wantComma // or the end of the container, or of the text
	inString
	inEscape
	inHex1
	inHex2
	inHex3
	inHex4
	inN
	inNu
	inNul
	inT
	inTr
	inTru
	inF
	inFa
	inFal
	inFals
	afterMinus
	afterZero
	inInteger
	afterPoint
	inFraction
	afterE
	afterSign
	inExponent

	invalid // also the number of states
	openObject
	openArray
	closeObject
	closeArray
	passComma
	openKey
	closeString
)

// expectations has the next expectation for each state and byte.
var expectations = func() (table [invalid][256]expectation) {
	for state := range table {
		for c := range table[state] {
			table[state][c] = invalid
		}
	}
	set := func(bytes string, to expectation, states ...expectation) {
		for _, state := range states {
			for _, c := range []byte(bytes) {
				table[state][c] = to
			}
		}
	}
	const digits, hex = "0123456789", "0123456789abcdefABCDEF"
	for _, state := range []expectation{wantValue, wantFirstValue, wantKey, wantFirstKey, wantColon, wantComma} {
		set(" \t\r\n", state, state)
	}
	set("{", openObject, wantValue, wantFirstValue)
	set("[", openArray, wantValue, wantFirstValue)
	set("]", closeArray, wantFirstValue)
	set("}", closeObject, wantFirstKey)
	set(`"`, openKey, wantKey, wantFirstKey)
	set(":", wantValue, wantColon)

	for c := ' '; c < 256; c++ {
		table[inString][c] = inString
	}
	set(`"`, inString, wantValue, wantFirstValue)
	set(`"`, closeString, inString)
	set(`\`, inEscape, inString)
	set(`"\/bfnrt`, inString, inEscape)
	set("u", inHex1, inEscape)
	for state := inHex1; state < inHex4; state++ {
		set(hex, state+1, state)
	}
	set(hex, inString, inHex4)

	for _, literal := range []struct {
		text  string
		first expectation
	}{{"null", inN}, {"true", inT}, {"false", inF}} {
		last := literal.first + expectation(len(literal.text)) - 2
		set(literal.text[:1], literal.first, wantValue, wantFirstValue)
		for state := literal.first; state < last; state++ {
			set(literal.text[state-literal.first+1:][:1], state+1, state)
		}
		set(literal.text[len(literal.text)-1:], wantComma, last)
	}

	set("-", afterMinus, wantValue, wantFirstValue)
	set("0", afterZero, wantValue, wantFirstValue, afterMinus)
	set(digits[1:], inInteger, wantValue, wantFirstValue, afterMinus)
	set(digits, inInteger, inInteger)
	set(".", afterPoint, afterZero, inInteger)
	set(digits, inFraction, afterPoint, inFraction)
	set("eE", afterE, afterZero, inInteger, inFraction)
	set("+-", afterSign, afterE)
	set(digits, inExponent, afterE, afterSign, inExponent)

	ends := []expectation{wantComma, afterZero, inInteger, inFraction, inExponent}
	set(" \t\r\n", wantComma, ends...)
	set(",", passComma, ends...)
	set("}", closeObject, ends...)
	set("]", closeArray, ends...)
	return table
}()

// findError returns the position at which a text ceases to be one JSON value, or -1 if it is valid.
func findError(text []byte) int {
	var v validator
	if at := v.feed(text); at >= 0 || v.complete() {
		return at
	}
	return len(text)
}

// complete reports whether the pieces so far are a JSON value.
func (v *validator) complete() bool {
	return v.open.depth == 0 && expectations[v.state][' '] == wantComma
}

// feed checks the next piece. It returns the position of an invalid byte, or -1.
func (v *validator) feed(p []byte) int {
	state := v.state
	for i := 0; i < len(p); i++ {
		if state == inString {
			if i = plainEnd(p, i); i == len(p) {
				break
			}
		}
		if state = expectations[state][p[i]]; state >= invalid {
			if state = v.act(state); state == invalid {
				return i
			}
		}
	}
	v.state = state
	return -1
}

// act does an action, and returns the next state.
func (v *validator) act(action expectation) expectation {
	switch open := v.open.depth > 0; {
	case action == openKey:
		v.key = true
		return inString
	case action == closeString && v.key:
		v.key = false
		return wantColon
	case action == closeString:
		return wantComma
	case action == openObject && v.open.depth < maxNesting:
		v.open.push(true)
		return wantFirstKey
	case action == openArray && v.open.depth < maxNesting:
		v.open.push(false)
		return wantFirstValue
	case action == passComma && open && v.open.inObject():
		return wantKey
	case action == passComma && open:
		return wantValue
	case action == closeObject && open && v.open.inObject(), action == closeArray && open && !v.open.inObject():
		v.open.depth--
		return wantComma
	}
	return invalid
}

// plainEnd returns the position of the first quote, backslash or control character at or after i, or len(p).
func plainEnd(p []byte, i int) int {
	const (
		ones       = 0x0101010101010101
		highs      = 0x80 * ones
		quotes     = '"' * ones
		backslashs = '\\' * ones
		spaces     = ' ' * ones
	)
	for i+8 <= len(p) {
		word := binary.LittleEndian.Uint64(p[i:])
		quote, backslash := word^quotes, word^backslashs
		found := ((quote-ones)&^quote | (backslash-ones)&^backslash | (word-spaces)&^word) & highs
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
		i += 8
	}
	for i < len(p) && p[i] != '"' && p[i] != '\\' && p[i] >= ' ' {
		i++
	}
	return i
}
