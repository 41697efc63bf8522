// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A frame of Amazon's event stream (application/vnd.amazon.eventstream) has, in big endian:
//
//	4 bytes  length of the frame
//	4 bytes  length of the headers
//	4 bytes  CRC-32 of these 8 bytes
//	headers  each: 1 byte length of the name, name, 1 byte type (7: string), 2 bytes length of the value, value
//	payload  JSON
//	4 bytes  CRC-32 of all bytes before
const (
	preludeBytes   = 12
	checksumBytes  = 4
	maxHeaderBytes = 128 << 10
	maxFrameBytes  = 24 << 20 // the bound of the AWS SDKs
	keptHeaders    = 1 << 10  // longer headers are skipped, only the payload matters then
	stringHeader   = 7
)

// A frames has the position within an event stream.
type frames struct {
	part    framePart
	filled  int                // bytes of the part
	prelude [preludeBytes]byte // also the checksum
	headers [keptHeaders]byte
	length  int // of the headers
	payload int
	crc     uint32
}

type framePart uint8

const (
	partPrelude framePart = iota
	partHeaders
	partPayload
	partChecksum
)

// readFrames feeds the payloads of frames to the walker.
func (r *Reader) readFrames(p []byte) {
	f := &r.frames
	for i := 0; i < len(p) && r.framing == framingFrames && !r.stopped; {
		switch f.part {
		case partPrelude:
			i += f.fill(f.prelude[:], p[i:])
			if f.filled == preludeBytes {
				if err := f.startFrame(); err != nil {
					r.stop(err)
				}
			}
		case partHeaders:
			n := min(f.length-f.filled, len(p)-i)
			if f.filled < keptHeaders {
				copy(f.headers[f.filled:], p[i:i+n])
			}
			f.take(p[i : i+n])
			i += n
		case partPayload:
			n := min(f.payload-f.filled, len(p)-i)
			r.walker.feed(p[i : i+n])
			f.take(p[i : i+n])
			i += n
		case partChecksum:
			i += f.fill(f.prelude[:checksumBytes], p[i:])
			if f.filled == checksumBytes {
				r.endFrame(i)
			}
		}
		f.advance()
	}
}

// fill copies bytes into a part of fixed length.
func (f *frames) fill(part, p []byte) int {
	n := copy(part[f.filled:], p)
	f.filled += n
	return n
}

func (f *frames) take(p []byte) {
	f.crc = crc32.Update(f.crc, crc32.IEEETable, p)
	f.filled += len(p)
}

func (f *frames) startFrame() error {
	length, headers := binary.BigEndian.Uint32(f.prelude[:]), binary.BigEndian.Uint32(f.prelude[4:])
	if got, want := crc32.ChecksumIEEE(f.prelude[:8]), binary.BigEndian.Uint32(f.prelude[8:]); got != want {
		return &Error{InvalidFrame, fmt.Sprintf("the checksum of the prelude is %08x, want %08x", want, got)}
	}
	if length > maxFrameBytes || headers > maxHeaderBytes || length < preludeBytes+headers+checksumBytes {
		return &Error{InvalidFrame, fmt.Sprintf("a frame of %d bytes with %d bytes of headers", length, headers)}
	}
	f.length, f.payload = int(headers), int(length-preludeBytes-headers-checksumBytes)
	f.crc = crc32.ChecksumIEEE(f.prelude[:])
	f.part, f.filled = partHeaders, 0
	return nil
}

// advance goes on to the payload or the checksum if the part before is complete.
func (f *frames) advance() {
	if f.part == partHeaders && f.filled == f.length {
		f.part, f.filled = partPayload, 0
	}
	if f.part == partPayload && f.filled == f.payload {
		f.part, f.filled = partChecksum, 0
	}
}

// endFrame takes over the facts of a frame with a correct checksum.
func (r *Reader) endFrame(position int) {
	f := &r.frames
	if want := binary.BigEndian.Uint32(f.prelude[:checksumBytes]); f.crc != want {
		r.stop(&Error{InvalidFrame, fmt.Sprintf("the checksum of a frame is %08x, want %08x", want, f.crc)})
		return
	}
	facts := &r.walker.facts
	switch f.header(":event-type") {
	case "contentBlockStart", "contentBlockDelta":
		r.progress.block = facts.reported.number[fIndex]
	case "contentBlockStop":
		r.progress.block = -1
	}
	if kind := f.header(":message-type"); kind == "exception" || kind == "error" {
		facts.failed = true
	}
	r.commit()
	if !r.walker.isAtRoot() {
		r.walker.reset()
	}
	r.endEvent(position)
	f.part, f.filled = partPrelude, 0
}

// header returns the value of a string header, or "".
func (f *frames) header(name string) string {
	p := f.headers[:min(f.length, keptHeaders)]
	for len(p) > 1 {
		key, rest, ok := cutBytes(p[1:], int(p[0]))
		if !ok || len(rest) < 3 || rest[0] != stringHeader {
			return ""
		}
		value, rest, ok := cutBytes(rest[3:], int(binary.BigEndian.Uint16(rest[1:])))
		if !ok {
			return ""
		}
		if string(key) == name {
			return headerValue(value)
		}
		p = rest
	}
	return ""
}

// headerValue returns the values that matter as constants, without an allocation.
func headerValue(value []byte) string {
	for _, known := range [...]string{"contentBlockStart", "contentBlockDelta", "contentBlockStop", "exception", "error"} {
		if string(value) == known {
			return known
		}
	}
	return ""
}

func cutBytes(p []byte, n int) (before, after []byte, ok bool) {
	if n > len(p) {
		return nil, nil, false
	}
	return p[:n], p[n:], true
}

// appendFrame appends a frame with headers, as pairs, and a payload.
func appendFrame(dst []byte, payload string, headers ...string) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, preludeBytes)...)
	for i := 0; i < len(headers); i += 2 {
		name, value := headers[i], headers[i+1]
		dst = append(append(dst, byte(len(name))), name...)
		dst = append(binary.BigEndian.AppendUint16(append(dst, stringHeader), uint16(len(value))), value...)
	}
	prelude := dst[start:]
	binary.BigEndian.PutUint32(prelude[4:], uint32(len(prelude)-preludeBytes))
	dst = append(dst, payload...)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start+checksumBytes))
	binary.BigEndian.PutUint32(dst[start+8:], crc32.ChecksumIEEE(dst[start:start+8]))
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:]))
}
