// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"encoding/binary"
	"io"
	"math"
	"time"

	"github.com/metehq/mete/bucket"
)

// What [Store.Save] writes is a line of text that names the format, then blocks,
// and at last the SHA-256 of all that. A block is a byte that says what it is,
// its length as a uvarint, and so many bytes. The numbers in it are varints:
//
//	head    the instant at which the save began; the hasher's secret
//	states  see [encoder.add]; there are any number of these blocks
//	tail    until when overflow buckets may not be full, and the last instant at
//	        which a full bucket was forgotten or left out, from the save's on
const (
	formatName    = "mete memstore "
	formatVersion = 1

	headBlock   = 'h'
	statesBlock = 's'
	tailBlock   = 't'

	fullBlock = 64 << 10 // a block of states is written once it is so long
	mostBlock = 1 << 20  // none is longer: see bucket.MaxLogEntries

	hashBytes   = 14 // of a slot's hash, of which 108 bits are kept
	secretBytes = 6 * 8

	// mostInstant bounds the instants in a file, so that none of the arithmetic
	// with them overflows. It lies in the year 38505.
	mostInstant bucket.Instant = 1 << 60
)

// The bits of the byte that says what kind of limit a shape is.
const (
	kindAlgorithm = 3
	kindAnchor    = 2 // two bits, shifted by this
	kindQueue     = 1 << 4
)

// An encoder writes states. Shapes are numbered in the order in which they come,
// so that only those in use are written.
type encoder struct {
	to      io.Writer
	saved   bucket.Instant
	forgot  bucket.Instant    // the last instant at which a full bucket was forgotten, or left out
	states  []byte            // of the block that is not written yet
	numbers map[uint64]uint64 // of a shape in the store, to that in the file
}

// block writes one block.
func (e *encoder) block(kind byte, payload []byte) error {
	if _, err := e.to.Write(binary.AppendUvarint([]byte{kind}, uint64(len(payload)))); err != nil {
		return err
	}
	_, err := e.to.Write(payload)
	return err
}

// add encodes a state: the hash of its key; the number of its shape, and what
// that is where it is a new one; and what there is to say in such a shape. It is
// false where an instant is out of bounds.
func (e *encoder) add(h hash, number uint64, shape *bucket.Limit, state *bucket.State) bool {
	if state.AsOf < -mostInstant || state.AsOf > mostInstant {
		return false
	}
	b := binary.LittleEndian.AppendUint64(e.states, h.h0)
	tag := h.h1 >> shapeBits
	b = binary.LittleEndian.AppendUint32(b, uint32(tag))
	b = binary.LittleEndian.AppendUint16(b, uint16(tag>>32))
	known, ok := e.numbers[number]
	if !ok {
		known = uint64(len(e.numbers))
		e.numbers[number] = known
	}
	if b = binary.AppendUvarint(b, known); !ok {
		b = appendShape(b, shape)
	}
	switch shape.Algorithm() {
	case bucket.SlidingLog:
		b = e.appendLog(b, state)
	case bucket.SlidingWindow:
		b = binary.AppendUvarint(b, uint64(state.Spent))
		b = binary.AppendVarint(b, int64(state.AsOf-e.saved))
		b = binary.AppendUvarint(b, uint64(state.Prev))
	default:
		b = binary.AppendUvarint(b, uint64(state.Spent))
		b = binary.AppendVarint(b, int64(state.AsOf-e.saved))
	}
	e.states = b
	return true
}

// appendShape encodes what a limit's Shape consists of.
func appendShape(b []byte, shape *bucket.Limit) []byte {
	n, p := shape.Refill()
	kind := byte(shape.Algorithm()) | byte(shape.Anchor())<<kindAnchor
	if shape.Queued() {
		kind |= kindQueue
	}
	return binary.AppendUvarint(binary.AppendUvarint(append(b, kind), uint64(n)), uint64(p))
}

// appendLog encodes the entries of a log, which say what the state's other
// fields are, or the instant of one that has none.
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

// A decoder reads the payload of a block. Once something was not what it should
// be, it is bad, and what it returns means nothing.
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

// number reads a uvarint that is at most most.
func (d *decoder) number(most uint64) uint64 {
	v, n := binary.Uvarint(d.rest)
	if d.bad || n <= 0 || v > most {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// instant reads an instant that counts from another one.
func (d *decoder) instant(from bucket.Instant) bucket.Instant {
	v, n := binary.Varint(d.rest)
	if d.bad || n <= 0 || v < -2*int64(mostInstant) || v > 2*int64(mostInstant) {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	if at := from + bucket.Instant(v); at >= -mostInstant && at <= mostInstant {
		return at
	}
	d.bad = true
	return 0
}

// hash reads the hash of a key.
func (d *decoder) hash() hash {
	b := d.bytes(hashBytes)
	tag := uint64(binary.LittleEndian.Uint32(b[8:])) | uint64(binary.LittleEndian.Uint16(b[12:]))<<32
	d.bad = d.bad || tag>>(64-shapeBits) != 0
	return hash{binary.LittleEndian.Uint64(b), tag << shapeBits}
}

// shape reads what a shape consists of. It is compiled anew, which checks it.
func (d *decoder) shape() bucket.Limit {
	kind := d.bytes(1)[0]
	n, p := bucket.Tokens(d.number(uint64(bucket.MaxTokens))), int64(d.number(math.MaxInt64/1000))
	spec := bucket.Spec{
		Algorithm: bucket.Algorithm(kind & kindAlgorithm),
		Anchor:    bucket.Anchor(kind >> kindAnchor & 3),
		Rate:      bucket.Rate{Tokens: n, Per: time.Duration(p) * time.Microsecond},
	}
	if kind&kindQueue != 0 {
		spec.Queue = 1
	}
	limit, _, err := spec.Compile()
	gotN, gotP := limit.Refill()
	d.bad = d.bad || err != nil || kind>>5 != 0 || gotN != n || gotP != p
	return limit.Shape()
}

// state reads a state under a limit of that shape.
func (d *decoder) state(shape *bucket.Limit, saved bucket.Instant) bucket.State {
	if shape.Algorithm() == bucket.SlidingLog {
		return d.log(saved)
	}
	state := bucket.State{Spent: int64(d.number(uint64(bucket.MaxTokens))), AsOf: d.instant(saved), Unit: shape.Unit()}
	if shape.Algorithm() == bucket.SlidingWindow {
		state.Prev = int64(d.number(uint64(min(state.Spent, int64(bucket.MaxWindowTokens)))))
		_, p := shape.Refill()
		// Nobody looks at where a window begins in which nothing was spent.
		d.bad = d.bad || state.Spent-state.Prev > int64(bucket.MaxWindowTokens) || state.Spent != 0 && int64(state.AsOf)%p != 0
	}
	if state.Spent == 0 {
		state.Unit = 0
	}
	return state
}

// log reads the state of a sliding log.
func (d *decoder) log(saved bucket.Instant) bucket.State {
	// Each entry takes two bytes: a file cannot ask for more memory than it justifies.
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
