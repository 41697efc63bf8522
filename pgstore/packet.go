// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"
)

// A packet encodes the parameters of a statement in PostgreSQL's binary format. It avoids the overhead of pgx, as
// a batch has thousands of values.
type packet struct {
	bytes  []byte
	starts []int // offsets of the parameters
	values [][]byte
}

func (p *packet) reset() { p.bytes, p.starts = p.bytes[:0], p.starts[:0] }

func (p *packet) beginParam() { p.starts = append(p.starts, len(p.bytes)) }

// end returns the parameters, which are valid until reset.
func (p *packet) end() [][]byte {
	p.values = p.values[:0]
	for i, start := range p.starts {
		end := len(p.bytes)
		if i+1 < len(p.starts) {
			end = p.starts[i+1]
		}
		p.values = append(p.values, p.bytes[start:end:end])
	}
	return p.values
}

func (p *packet) addInt(v int64) {
	p.beginParam()
	p.bytes = binary.BigEndian.AppendUint64(p.bytes, uint64(v))
}

func (p *packet) addBool(v bool) {
	p.beginParam()
	if v {
		p.bytes = append(p.bytes, 1)
	} else {
		p.bytes = append(p.bytes, 0)
	}
}

// addBytes adds a bytea or text parameter that consists of two parts.
func (p *packet) addBytes(prefix, key string) {
	p.beginParam()
	p.bytes = append(append(p.bytes, prefix...), key...)
}

// beginArray begins an array parameter of this size. Its elements follow.
func (p *packet) beginArray(oid uint32, size int) {
	p.beginParam()
	p.appendWord(1) // dimensions
	if size == 0 {
		binary.BigEndian.PutUint32(p.bytes[len(p.bytes)-4:], 0)
	}
	p.appendWord(0) // no nulls
	p.appendWord(oid)
	if size > 0 {
		p.appendWord(uint32(size))
		p.appendWord(1) // the first index
	}
}

func (p *packet) appendWord(v uint32) { p.bytes = binary.BigEndian.AppendUint32(p.bytes, v) }

func (p *packet) appendInt(v int64) {
	p.appendWord(8)
	p.bytes = binary.BigEndian.AppendUint64(p.bytes, uint64(v))
}

func (p *packet) appendText(prefix, text string) {
	p.appendWord(uint32(len(prefix) + len(text)))
	p.bytes = append(append(p.bytes, prefix...), text...)
}

func (p *packet) addInts(values []int64) {
	p.beginArray(pgtype.Int8OID, len(values))
	for _, v := range values {
		p.appendInt(v)
	}
}

func readInt(value []byte) (int64, bool) {
	if len(value) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(value)), true
}

// readElements calls f with each element of an array without nulls. It reports whether value was such an array.
func readElements(value []byte, f func([]byte)) bool {
	const header = 12 // dimensions, nulls, type
	if len(value) < header {
		return false
	}
	dimensions, rest := binary.BigEndian.Uint32(value), value[header:]
	if dimensions == 0 {
		return true
	}
	if dimensions != 1 || len(rest) < 8 {
		return false
	}
	size, rest := binary.BigEndian.Uint32(rest), rest[8:]
	for range size {
		if len(rest) < 4 {
			return false
		}
		length := int32(binary.BigEndian.Uint32(rest))
		if rest = rest[4:]; length < 0 || int(length) > len(rest) {
			return false
		}
		f(rest[:length])
		rest = rest[length:]
	}
	return true
}
