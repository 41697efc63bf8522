// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"hash/maphash"
	"unsafe"
)

// keys makes the texts of bucket keys. They outlive the decision, so a new key needs new memory. A client with
// frequent requests needs none, because keys caches recent texts. It is not safe for concurrent use. The zero keys
// is ready for use.
type keys struct {
	known [knownKeys]string // by a part of their hash
	slab  []byte            // new texts, back to back; never overwritten
}

const (
	knownKeys = 256 // a power of 2

	// slabBytes are allocated at a time, which is cheaper than one allocation per key. A program that keeps a key
	// also keeps the memory of its neighbors.
	slabBytes = 512
)

// keySeed is random, so that clients cannot choose keys that evict each other.
var keySeed = maphash.MakeSeed()

func (k *keys) intern(key []byte) string {
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
