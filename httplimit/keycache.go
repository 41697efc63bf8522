// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	// cacheSlots is the number of keys that a route caches, a power of two.
	cacheSlots = 256

	// maxCachedBytes bounds the length of values with cached keys.
	maxCachedBytes = 256
)

// A keyCache caches the keys of recent values, one per slot. Computing a key takes an allocation and usually a
// hash. A value is cached when it occurs twice in a row in its slot, so values that occur once leave only a hash.
// The cache holds values in plain text, as requests in flight do. It is safe for concurrent use.
type keyCache struct {
	seed  maphash.Seed
	slots [cacheSlots]cacheSlot
}

type cacheSlot struct {
	seen  atomic.Uint64 // hash of the last value that is not in entry
	entry atomic.Pointer[cachedKey]
}

type cachedKey struct {
	text string
	key  int // length of the key
}

func newKeyCache() *keyCache { return &keyCache{seed: maphash.MakeSeed()} }

// slot returns the slot of a value and the value's hash.
func (c *keyCache) slot(value string) (*cacheSlot, uint64) {
	h := maphash.String(c.seed, value)
	return &c.slots[h%cacheSlots], h
}

func (s *cacheSlot) key(value string) string {
	if e := s.entry.Load(); e != nil && e.text[e.key:] == value {
		return e.text[:e.key]
	}
	return ""
}

// add returns key as a string. It caches the key if value was also the last miss.
func (s *cacheSlot) add(key []byte, value string, hash uint64) string {
	if len(value) > maxCachedBytes || s.seen.Swap(hash) != hash {
		return string(key)
	}
	text := string(append(key, value...))
	s.entry.Store(&cachedKey{text, len(key)})
	return text[:len(key)]
}
