// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	// maxHashes bounds the hashes that a keyer remembers, at 56 bytes each and 8 for each
	// place. Beyond it, a new one takes the place of an old one.
	maxHashes = 1 << 12

	// hashTextBytes is how long the mark and the text of a hash are.
	hashTextBytes = len(hashMark) + hashChars
)

// hashes are keyed hashes that were made lately, because to make one costs as much as the
// rest of a decision. They do not hold the values, which may be credentials: a value is
// known by 128 bits of two other hashes, and no other process has their seeds.
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

// place returns where the hash of a value is, if it is known, and by what it is known.
func (h *hashes) place(value string) (at *atomic.Pointer[madeHash], check [2]uint64) {
	check = [2]uint64{maphash.String(h.seeds[0], value), maphash.String(h.seeds[1], value)}
	return &h.table[check[0]%maxHashes], check
}
