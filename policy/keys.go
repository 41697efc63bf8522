// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"hash/maphash"
	"unsafe"
)

// keys makes the texts of bucket keys. They outlive the decision, so a new key needs new
// memory. The key of a client that comes often needs none, because keys remembers some of
// the latest texts. It is not safe for concurrent use. The zero keys is ready for use.
type keys struct {
	known [knownKeys]string // by a part of their hash
	slab  []byte            // of new texts, one behind the other; nothing writes over them
}

const (
	knownKeys = 256 // a power of 2

	// slabBytes is allocated at a time, which costs less than one allocation for each key.
	// A program that keeps a key keeps the memory of its neighbors.
	slabBytes = 512
)

// keySeed is random, so that no client can choose keys that push out each other.
var keySeed = maphash.MakeSeed()

// text returns key as a string.
func (k *keys) text(key []byte) string {
	known := &k.known[maphash.Bytes(keySeed, key)%knownKeys]
	if *known != string(key) {
		if cap(k.slab)-len(k.slab) < len(key) {
			k.slab = make([]byte, 0, max(slabBytes, len(key)))
		}
		start := len(k.slab)
		k.slab = append(k.slab, key...)
		*known = unsafe.String(unsafe.SliceData(k.slab[start:]), len(key))
	}
	return *known
}
