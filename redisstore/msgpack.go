// SPDX-License-Identifier: Apache-2.0

package redisstore

import "encoding/binary"

// packed is an array of integers in MessagePack, which Redis unpacks natively.
type packed struct {
	text  []byte
	count uint32
}

func (p *packed) begin() {
	p.text, p.count = append(p.text[:0], 0xdd, 0, 0, 0, 0), 0
}

func (p *packed) addBool(on bool) {
	if on {
		p.add(1)
	} else {
		p.add(0)
	}
}

func (p *packed) add(v int64) {
	p.count++
	switch {
	case v < 0 && v >= -32, v >= 0 && v < 128:
		p.text = append(p.text, byte(v))
	case v >= 0 && v < 1<<16:
		p.text = binary.BigEndian.AppendUint16(append(p.text, 0xcd), uint16(v))
	case v >= 0 && v < 1<<32:
		p.text = binary.BigEndian.AppendUint32(append(p.text, 0xce), uint32(v))
	default:
		p.text = binary.BigEndian.AppendUint64(append(p.text, 0xd3), uint64(v))
	}
}

func (p *packed) end() string {
	binary.BigEndian.PutUint32(p.text[1:], p.count)
	return string(p.text)
}
