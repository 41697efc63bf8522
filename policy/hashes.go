// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	// maxHashes bounds the hashes that a keyer caches, at 56 bytes each and 8 per slot. When it is full, new
	// hashes replace old ones.
	maxHashes = 1 << 12

	// hashTextBytes is the length of the mark and the text of a hash.
	hashTextBytes = len(hashMark) + hashChars
)

// hashes is a cache of keyed hashes, because computing one costs as much as the rest of a decision. It does not
// hold the values, which may be credentials. It identifies a value by 128 bits of two other hashes with seeds that
// only this process has.
type hashes struct {
	seeds [2]maphash.Seed
	table [maxHashes]atomic.Pointer[madeHash]
}

type madeHash struct {
	check [2]uint64
	text  [hashTextBytes]byte
}

func newHashes() *hashes {
	return &hashes{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

// lookUp returns the slot for the hash of a value, and the check that identifies the value.
func (h *hashes) lookUp(value string) (at *atomic.Pointer[madeHash], check [2]uint64) {
	check = [2]uint64{maphash.String(h.seeds[0], value), maphash.String(h.seeds[1], value)}
	return &h.table[check[0]%maxHashes], check
}
