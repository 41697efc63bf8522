// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"sync"
)

// A hashKey keys the hashes that stand for what clients send.
type hashKey []byte

// processKey is the key where nobody gives one: the same for all middlewares of
// a process, whose limits may share buckets.
var processKey = sync.OnceValue(func() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return key
})

func newHashKey(key []byte) hashKey {
	if len(key) == 0 {
		key = processKey()
	}
	if len(key) > sha256.Size {
		sum := sha256.Sum256(key)
		key = sum[:]
	}
	return bytes.Clone(key)
}

const (
	// hashBytes is how much of a hash stands in a key.
	hashBytes = 16

	// shortValue is the length of values that are hashed without allocating.
	shortValue = 256
)

// append appends half of the keyed hash of value, which takes length extension
// off the table.
func (h hashKey) append(dst []byte, value string) []byte {
	var space [1 + sha256.Size + shortValue]byte
	text := append(space[:0], byte(len(h)))
	text = append(append(text, h...), value...)
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.AppendEncode(append(dst, '~'), sum[:hashBytes])
}
