// SPDX-License-Identifier: Apache-2.0

package topkeys

import (
	"hash/maphash"
	"strconv"

	"github.com/metehq/mete/bucket"
)

type event struct {
	key   string
	hash  uint64 // seeded hash of key
	at    bucket.Instant
	retry bucket.Instant // end of the wait; 0 if unknown
}

// A counter counts one key. It holds a copy of the key, so that memory is bounded.
type counter struct {
	hash               uint64
	over               uint64 // maximum overestimate of the count
	first, last, retry bucket.Instant
	group              int32 // group of counters with the same count
	before, after      int32 // neighbors in the group
	cut                bool
	size               uint8
	key                [MaxKeyBytes]byte
}

// counterBytes is the size of a counter with its group and its table entries.
const counterBytes = 256

// cutMark separates the start of a shortened key from the hash of the whole key, which has hashDigits digits.
const (
	cutMark    = "~"
	hashDigits = 16
)

// matches reports whether c counts e's key. Shortened keys are distinguished by a 64-bit seeded hash.
func (c *counter) matches(e *event) bool {
	if c.hash != e.hash {
		return false
	}
	if !c.cut {
		return string(c.key[:c.size]) == e.key
	}
	const begin = MaxKeyBytes - len(cutMark) - hashDigits
	return len(e.key) > MaxKeyBytes && string(c.key[:begin]) == e.key[:begin]
}

func (c *counter) assign(e *event) {
	c.hash, c.cut = e.hash, len(e.key) > MaxKeyBytes
	if !c.cut {
		c.size = uint8(copy(c.key[:], e.key))
		return
	}
	const zeros = "0000000000000000"
	b := append(c.key[:0], e.key[:MaxKeyBytes-len(cutMark)-hashDigits]...)
	b = append(b, cutMark...)
	digits := strconv.AppendUint(make([]byte, 0, hashDigits), e.hash, 16)
	b = append(b, zeros[len(digits):]...)
	b = append(b, digits...)
	c.size = uint8(len(b))
}

func (c *counter) text() string { return string(c.key[:c.size]) }

func hashOf(seed maphash.Seed, key string) uint64 { return maphash.String(seed, key) }
