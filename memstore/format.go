// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"encoding/binary"
	"io"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A file of [Store.Save] is a line of text with the format, followed by blocks, and ends with the SHA-256 of
// everything before. A block is a kind byte, a length as a uvarint, and the payload. Numbers in a payload are
// varints:
//
//	head    start of the save; the hasher's secret
//	states  rows, see [encoder.add]; any number of these blocks
//	penalties, any number of these blocks: the hash of the key, its family, the end from the save's start, the length,
//	        the time from the end until it expires, and the level
//	slots   slots of concurrency limits, see [encoder.addSlots]; any number of these blocks, also between states
//	tail    since the save's start: until when overflow buckets may not be full,
//	        and the last instant at which a full bucket was evicted or left out
const (
	formatName    = "mete memstore "
	formatVersion = 3

	headBlock      = 'h'
	statesBlock    = 's'
	slotsBlock     = 'c'
	penaltiesBlock = 'p'
	tailBlock      = 't'

	flushSize = 64 << 10 // a block of states is written at this size
	maxBlock  = 1 << 20  // no block is longer: see bucket.MaxLogEntries

	hashBytes   = 14 // of a slot's hash: 112 bits
	secretBytes = 6 * 8

	// maxInstant bounds the instants in a file, so that no arithmetic overflows. It is in the year 38505.
	maxInstant bucket.Instant = 1 << 60
)

// An encoder writes rows. It numbers limits in order of appearance, so that the file holds only the limits in use.
type encoder struct {
	to        io.Writer
	saved     bucket.Instant
	evictedAt bucket.Instant         // the last instant at which a full bucket was evicted or left out
	states    []byte                 // of the current block
	numbers   map[familyLimit]uint64 // in the file
}

func (e *encoder) writeBlock(kind byte, payload []byte) error {
	if _, err := e.to.Write(binary.AppendUvarint([]byte{kind}, uint64(len(payload)))); err != nil {
		return err
	}
	_, err := e.to.Write(payload)
	return err
}

// add encodes a row: the hash of its key and the number of accounts. Each account is the number of its limit and the
// state. The first use of a limit adds its text and family. It returns false if an instant is out of bounds.
func (e *encoder) add(h hash, family string, row bucket.Row) bool {
	b := append(appendHash(e.states, h), byte(len(row)))
	for i := range row {
		l, state := &row[i].Limit, &row[i].State
		if state.AsOf < -maxInstant || state.AsOf > maxInstant {
			return false
		}
		name := familyLimit{*l, family}
		number, known := e.numbers[name]
		if !known {
			number = uint64(len(e.numbers))
			e.numbers[name] = number
		}
		if b = binary.AppendUvarint(b, number); !known {
			text := l.Encode()
			b = append(append(b, byte(len(text))), text...)
			b = append(binary.AppendUvarint(b, uint64(len(family))), family...)
		}
		b = e.appendState(b, l, state)
	}
	e.states = b
	return true
}

func appendHash(b []byte, h hash) []byte {
	tag := h.h1 >> numberBits
	b = binary.LittleEndian.AppendUint64(b, h.h0)
	b = binary.LittleEndian.AppendUint32(b, uint32(tag))
	return binary.LittleEndian.AppendUint16(b, uint16(tag>>32))
}

// appendState encodes the part of a state that does not follow from the limit.
func (e *encoder) appendState(b []byte, l *bucket.Limit, state *bucket.State) []byte {
	if l.Algorithm() == bucket.AlgorithmSlidingLog {
		return e.appendLog(b, state)
	}
	b = binary.AppendUvarint(b, uint64(state.Spent))
	b = binary.AppendVarint(b, int64(state.AsOf-e.saved))
	if l.Algorithm() == bucket.AlgorithmSlidingWindow {
		b = binary.AppendUvarint(b, uint64(state.Prev))
	}
	return b
}

// appendLog encodes the entries of a log, or the state's instant if the log is empty.
func (e *encoder) appendLog(b []byte, state *bucket.State) []byte {
	entries := state.Log.Entries()
	b = binary.AppendUvarint(b, uint64(len(entries)))
	if len(entries) == 0 {
		return binary.AppendVarint(b, int64(state.AsOf-e.saved))
	}
	last := e.saved
	for _, entry := range entries {
		b = binary.AppendVarint(b, int64(entry.At-last))
		b = binary.AppendUvarint(b, uint64(entry.Cost))
		last = entry.At
	}
	return b
}

// A decoder reads the payload of a block. After an error, bad is true and all results are meaningless.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) bytes(n int) []byte {
	if d.bad || len(d.rest) < n {
		d.bad = true
		return make([]byte, n)
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) number(most uint64) uint64 {
	v, n := binary.Uvarint(d.rest)
	if d.bad || n <= 0 || v > most {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) instant(from bucket.Instant) bucket.Instant {
	v, n := binary.Varint(d.rest)
	if d.bad || n <= 0 || v < -2*int64(maxInstant) || v > 2*int64(maxInstant) {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	if at := from + bucket.Instant(v); at >= -maxInstant && at <= maxInstant {
		return at
	}
	d.bad = true
	return 0
}

func (d *decoder) hash() hash {
	b := d.bytes(hashBytes)
	tag := uint64(binary.LittleEndian.Uint32(b[8:])) | uint64(binary.LittleEndian.Uint16(b[12:]))<<32
	return hash{binary.LittleEndian.Uint64(b), tag << numberBits}
}

// limit reads the text of a limit without the start of a key, and its family.
func (d *decoder) limit() familyLimit {
	n := d.bytes(1)[0]
	text := string(d.bytes(int(n)))
	limit, err := bucket.DecodeLimit(text)
	d.bad = d.bad || err != nil || limit.Encode() != text || limit != limit.ForKey("")
	return familyLimit{limit, string(d.bytes(int(d.number(store.MaxKeyBytes))))}
}

func (d *decoder) state(l *bucket.Limit, saved bucket.Instant) bucket.State {
	if l.Algorithm() == bucket.AlgorithmSlidingLog {
		return d.log(saved)
	}
	state := bucket.State{Spent: int64(d.number(uint64(bucket.MaxTokens))), AsOf: d.instant(saved), Unit: l.Unit()}
	if l.Algorithm() == bucket.AlgorithmSlidingWindow {
		state.Prev = int64(d.number(uint64(min(state.Spent, int64(bucket.MaxWindowTokens)))))
		_, p := l.Refill()
		// The start of an empty window does not matter.
		d.bad = d.bad || state.Spent-state.Prev > int64(bucket.MaxWindowTokens) || state.Spent != 0 && int64(state.AsOf)%p != 0
	}
	if state.Spent == 0 {
		state.Unit = 0
	}
	return state
}

func (d *decoder) log(saved bucket.Instant) bucket.State {
	// Each entry takes at least two bytes, so a corrupt count cannot allocate too much memory.
	n := d.number(uint64(min(bucket.MaxLogEntries, len(d.rest)/2)))
	if n == 0 {
		return bucket.State{AsOf: d.instant(saved)}
	}
	entries := make([]bucket.Entry, n)
	spent, last := int64(0), saved
	for i := range entries {
		at, cost := d.instant(last), bucket.Tokens(d.number(uint64(bucket.MaxWindowTokens)))
		spent += int64(cost)
		d.bad = d.bad || i > 0 && at < last || cost == 0 || spent > int64(bucket.MaxTokens)
		entries[i], last = bucket.Entry{At: at, Cost: cost}, at
	}
	return bucket.State{Spent: spent, AsOf: last, Unit: 1, Log: bucket.NewLog(entries)}
}
