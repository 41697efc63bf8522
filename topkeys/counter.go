// SPDX-License-Identifier: Apache-2.0

package topkeys

import (
	"hash/maphash"
	"strconv"

	"github.com/metehq/mete/bucket"
)

// An event is one record, on its way into a summary.
type event struct {
	key   string
	hash  uint64 // of key, seeded
	at    bucket.Instant
	retry bucket.Instant // when the key is admitted again; 0 for not known
}

// A counter counts one key. It holds the key itself, not a pointer to it, so that
// what is kept is known, and neither allocates nor keeps what the key was cut from.
type counter struct {
	hash               uint64
	over               uint64 // by how much the count may be too high
	first, last, retry bucket.Instant
	group              int32 // of those with the same count
	before, after      int32 // in the group
	cut                bool
	size               uint8
	key                [MaxKeyBytes]byte
}

// counterBytes is what a counter takes, with its group and its places in the table.
const counterBytes = 256

// cutMark stands between the beginning of a key that was cut and the hash of all of
// it, of hashDigits.
const (
	cutMark    = "~"
	hashDigits = 16
)

// is reports whether c counts e's key. Of keys that were cut, two with the same
// beginning are taken for one if 64 bits of a hash agree whose seed nobody knows.
func (c *counter) is(e *event) bool {
	if c.hash != e.hash {
		return false
	}
	if !c.cut {
		return string(c.key[:c.size]) == e.key
	}
	const begin = MaxKeyBytes - len(cutMark) - hashDigits
	return len(e.key) > MaxKeyBytes && string(c.key[:begin]) == e.key[:begin]
}

// name makes c the counter of e's key.
func (c *counter) name(e *event) {
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
