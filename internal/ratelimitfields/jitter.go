// SPDX-License-Identifier: Apache-2.0

package ratelimitfields

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// A jitter spreads denied clients, so that they do not all return together. A client's jitter depends only on its
// identity and its exact wait. Without the key, it is impossible to compute it for another client or to infer the
// identity from it.
type jitter struct{ key []byte }

const defaultJitter = 50

// add returns wait plus 0 to max(1, percent of wait) whole seconds, uniformly distributed. With 0 percent it
// returns wait. Jitter is in whole seconds, because rounding up fractions would turn all waits of one second into
// two.
func (j jitter) add(wait int64, percent int, client []string) int64 {
	if percent == 0 {
		return wait
	}
	most := wait / 100 * int64(percent) // in two parts to avoid overflow
	most += wait % 100 * int64(percent) / 100
	spread, _ := bits.Mul64(j.hash(client), uint64(max(1, most)+1))
	return wait + int64(spread)
}

// maxPartBytes bounds the hashed part of each client value. Clients that differ only after it share their jitter.
const maxPartBytes = 256

// hash returns the keyed hash of client. Different lists hash different bytes. Cutting the sum to 64 bits rules
// out length extension attacks.
func (j jitter) hash(client []string) uint64 {
	var space [256]byte
	text := append(space[:0], j.key...)
	for _, part := range client {
		part = part[:min(len(part), maxPartBytes)]
		text = binary.BigEndian.AppendUint32(text, uint32(len(part)))
		text = append(text, part...)
	}
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:])
}
