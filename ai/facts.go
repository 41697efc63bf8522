// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"math"
	"strconv"
)

// The facts that a walker reads. reset removes the facts of a document, and keeps the text and the identity of the stream.
type facts struct {
	text      Text
	media     int
	model, id token

	document
}

// A document is a JSON body or an event.
type document struct {
	reported reported
	twice    uint32 // bits of the fields that occur twice and are no numbers
	strange  uint32 // bits of the fields of another type
	present  uint32 // bits of the fields that are no numbers
	kind     kind
	finished bool
	failed   bool
	stream   bool
	include  bool
	later    bool // background: the response comes later

	before Text // the text before a source
	data   Text // of a source until its end
	plain  bool // the source is a text
}

func (f *facts) reset() { f.document = document{} }

// A token is a short string as it is in JSON, with its escape sequences.
type token struct {
	bytes  [maxCapture]byte
	length int
}

func (t *token) set(raw []byte) { t.length = copy(t.bytes[:], raw) }
func (t *token) text() []byte   { return t.bytes[:t.length] }

// A kind is the type of an event.
type kind uint8

const (
	unknownEvent kind = iota
	blockStart
	blockStop
	messageStop
	responseEnd
	errorEvent
)

func parseKind(raw []byte) kind {
	switch string(raw) {
	case "content_block_start":
		return blockStart
	case "content_block_stop":
		return blockStop
	case "message_stop":
		return messageStop
	case "response.completed", "response.incomplete", "response.failed":
		return responseEnd
	case "error":
		return errorEvent
	}
	return unknownEvent
}

func (f *facts) setString(name field, raw []byte, complete bool) {
	f.mark(name)
	switch name {
	case fModel:
		if complete && f.model.length == 0 {
			f.model.set(raw)
		} else if !complete {
			f.strange |= 1 << (fModel - numbers)
		}
	case fID:
		if complete && f.id.length == 0 {
			f.id.set(raw)
		}
	case fType:
		f.kind = parseKind(raw)
	case fFinish: // some servers send "" for null, and an unspecified reason in each chunk
		f.finished = f.finished || len(raw) > 0 && string(raw) != "FINISH_REASON_UNSPECIFIED"
	case fStatus:
		f.finished = f.finished || string(raw) == "completed" || string(raw) == "incomplete" || string(raw) == "failed"
	case fFailed:
		f.failed = true
	case fSourceType:
		f.plain = string(raw) == "text"
	case fStream, fInclude, fBackground:
		f.strange |= 1 << (name - numbers)
	default:
		if name < numbers { // a number in quotes
			f.setInvalid(name)
		}
	}
}

func (f *facts) setScalar(name field, raw []byte, complete bool) {
	literal := string(raw)
	if literal == "null" {
		return
	}
	switch {
	case name == fText || name == fDeep:
		f.addChars(max(len(raw), minScalar))
	case name < numbers:
		f.setNumber(name, raw, complete)
	case isBool(name):
		f.mark(name)
		f.setBool(name, literal)
	case name == fModel:
		f.strange |= 1 << (name - numbers)
	}
}

func (f *facts) setBool(name field, literal string) {
	isTrue := literal == "true"
	switch {
	case !isTrue && literal != "false":
		f.strange |= 1 << (name - numbers)
	case name == fStream:
		f.stream = isTrue
	case name == fInclude:
		f.include = isTrue
	case name == fBackground:
		f.later = isTrue
	}
}

// mark notes that a field is present.
func (f *facts) mark(name field) {
	if name > numbers {
		bit := uint32(1) << (name - numbers)
		f.twice |= f.present & bit
		f.present |= bit
	}
}

// minScalar is the number of characters that a number in a text counts at least. A prompt can be an array of token IDs.
const minScalar = 4

func (f *facts) addChars(n int) {
	f.text.Bytes += int64(n)
	f.text.Chars += int64(n)
}

func (f *facts) setNumber(name field, raw []byte, complete bool) {
	most := int64(MaxTokens)
	switch {
	case name <= fRoundOutput:
		most = MaxUsage
	case name == fCreated:
		most = math.MaxInt32 * 4
	}
	n, ok := parseNumber(raw, most)
	if !ok && raw[0] == '-' && name >= fMaxTokens && name <= fBestOf { // some servers take -1 for no maximum
		_, ok = parseNumber(raw[1:], most)
	}
	if !ok || !complete {
		f.setInvalid(name)
		return
	}
	r := &f.reported
	bit := uint32(1) << name
	if name >= fRoundInput && name <= fRoundOutput {
		if n += r.number[name]; n > MaxUsage {
			f.setInvalid(name)
			return
		}
	} else if r.seen&bit != 0 {
		r.twice |= bit
	}
	r.number[name] = n
	r.seen |= bit
}

func (f *facts) setInvalid(name field) {
	f.reported.invalid |= 1 << name
	f.reported.seen |= 1 << name
}

// parseNumber reads an integer from 0 to a maximum. 1e3 and 5.0 are integers.
func parseNumber(raw []byte, most int64) (int64, bool) {
	if len(raw) == 0 || len(raw) > 20 {
		return 0, false
	}
	n := int64(0)
	for _, c := range raw {
		if c < '0' || c > '9' {
			x, err := strconv.ParseFloat(string(raw), 64)
			return int64(x), err == nil && x >= 0 && x <= float64(most) && x == math.Trunc(x)
		}
		if n = n*10 + int64(c-'0'); n > most {
			return 0, false
		}
	}
	return n, true
}

// startString notes a string before it is read.
func (f *facts) startString(name field) {
	switch name {
	case fMedia:
		f.media++
	case fSourceData:
		f.before = f.text
	}
}

// endData takes the data of a source out of the text, because they can be an image.
func (f *facts) endData() {
	f.data = Text{f.text.Bytes - f.before.Bytes, f.text.Chars - f.before.Chars}
	f.text = f.before
}

// openContainer notes an object or an array in place of a value.
func (f *facts) openContainer(name field) {
	switch {
	case name == fFailed:
		f.failed = true
	case name == fMedia:
		f.media++
	case name == fSource:
		f.data, f.plain = Text{}, false
	case name < numbers:
		f.setInvalid(name)
	case name == fModel || isBool(name):
		f.mark(name)
		f.strange |= 1 << (name - numbers)
	}
}

// closeSource counts a source: a plain text is text, everything else is media.
func (f *facts) closeSource() {
	if f.plain {
		f.text.Bytes += f.data.Bytes
		f.text.Chars += f.data.Chars
		return
	}
	f.media++
}
