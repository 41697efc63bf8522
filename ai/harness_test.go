// SPDX-License-Identifier: Apache-2.0

package ai_test

import (
	"encoding/binary"
	"hash/crc32"
	"iter"
)

// piecesOf cuts a body into pieces of n bytes.
func piecesOf(body []byte, n int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(body) > 0 {
			m := min(n, len(body))
			if !yield(body[:m]) {
				return
			}
			body = body[m:]
		}
	}
}

// frame returns a frame of an event stream. It is written from the specification, apart from the package's own writer.
func frame(event, payload string) []byte {
	return frameOf(payload, ":event-type", event, ":content-type", "application/json", ":message-type", "event")
}

func frameOf(payload string, headers ...string) []byte {
	var h []byte
	for i := 0; i < len(headers); i += 2 {
		h = append(append(h, byte(len(headers[i]))), headers[i]...)
		h = append(binary.BigEndian.AppendUint16(append(h, 7), uint16(len(headers[i+1]))), headers[i+1]...)
	}
	f := binary.BigEndian.AppendUint32(nil, uint32(16+len(h)+len(payload)))
	f = binary.BigEndian.AppendUint32(f, uint32(len(h)))
	f = binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
	f = append(append(f, h...), payload...)
	return binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
}
