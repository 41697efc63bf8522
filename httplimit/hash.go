// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// A hashKey keys the hashes that stand for what clients send.
type hashKey []byte

// newHashKey returns the key for the limits: the given one or, where that is empty, the
// one of the limiter's store, which all processes with that store share. A store without
// one is an error only where a limit hashes anything.
func newHashKey(key []byte, limiter *mete.Limiter, limits []Limit) (hashKey, error) {
	if len(key) == 0 && limiter != nil && slices.ContainsFunc(limits, func(l Limit) bool { return l.Key.hashes }) {
		var err error
		if key, err = limiter.HashKey(); err != nil {
			return nil, err
		}
	}
	if len(key) > sha256.Size {
		sum := sha256.Sum256(key)
		key = sum[:]
	}
	return bytes.Clone(key), nil
}

// shortValue is the length of values that are hashed without allocating.
const shortValue = 256

// append appends half of the keyed hash of value, which takes length extension
// off the table.
func (h hashKey) append(dst []byte, value string) []byte {
	var space [1 + sha256.Size + shortValue]byte
	text := append(space[:0], byte(len(h)))
	text = append(append(text, h...), value...)
	sum := sha256.Sum256(text)
	return policy.AppendKeyHash(dst, sum[:])
}
