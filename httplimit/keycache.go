// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	// cacheSlots is the number of keys that a route remembers, a power of two.
	cacheSlots = 256

	// maxCachedBytes bounds the values whose keys are remembered.
	maxCachedBytes = 256
)

// A keyCache remembers the keys of the values that came last, one in each slot. A key takes
// an allocation to make, and most often a hash. A value is remembered when it comes twice
// in a row for its slot, so values that come once leave no trace but a hash. The cache holds
// values in plain text, as the requests in flight do. It is safe for concurrent use.
type keyCache struct {
	seed  maphash.Seed
	slots [cacheSlots]cacheSlot
}

type cacheSlot struct {
	seen  atomic.Uint64 // hash of the value that came last and is not in entry
	entry atomic.Pointer[cachedKey]
}

// A cachedKey is one string, which holds a key and then the value that it is made of.
type cachedKey struct {
	text string
	key  int // bytes
}

func newKeyCache() *keyCache { return &keyCache{seed: maphash.MakeSeed()} }

// slot returns the slot of a value and the hash that tells whether it came last.
func (c *keyCache) slot(value string) (*cacheSlot, uint64) {
	h := maphash.String(c.seed, value)
	return &c.slots[h%cacheSlots], h
}

// key returns the key of that value, "" if it is not known.
func (s *cacheSlot) key(value string) string {
	if e := s.entry.Load(); e != nil && e.text[e.key:] == value {
		return e.text[:e.key]
	}
	return ""
}

// add returns the key, and remembers it if the value was the last one to miss.
func (s *cacheSlot) add(key []byte, value string, hash uint64) string {
	if len(value) > maxCachedBytes || s.seen.Swap(hash) != hash {
		return string(key)
	}
	text := string(append(key, value...))
	s.entry.Store(&cachedKey{text, len(key)})
	return text[:len(key)]
}
