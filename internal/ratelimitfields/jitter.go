// SPDX-License-Identifier: Apache-2.0

package ratelimitfields

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// A jitter spreads denied clients, so that they do not all return at once. The wait of a
// client depends on its identity and its exact wait alone. Nobody without the key can
// compute it for another client, or learn the identity from it.
type jitter struct{ key []byte }

// defaultJitter is the percentage where neither the rule nor the config sets one.
const defaultJitter = 50

// add returns a wait of at least wait seconds: later by 0 to max(1, percent of
// wait) whole seconds, each as likely; of 0 percent, no later at all. Fractions of
// a second would be lost: rounded up, all waits of a second would become two.
func (j jitter) add(wait int64, percent int, client []string) int64 {
	if percent == 0 {
		return wait
	}
	most := wait / 100 * int64(percent) // in two parts, since the whole could overflow
	most += wait % 100 * int64(percent) / 100
	spread, _ := bits.Mul64(j.hash(client), uint64(max(1, most)+1))
	return wait + int64(spread)
}

// maxPartBytes is how much of each part of a client's name is hashed. Clients
// that differ only beyond it share their jitter.
const maxPartBytes = 256

// hash returns the keyed hash of client. No two lists of parts hash the same
// bytes. (Cutting the sum to 64 bits takes length extension off the table.)
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
