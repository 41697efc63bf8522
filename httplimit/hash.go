// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// A hashKey is the key of the hashes that replace client values in bucket keys.
type hashKey []byte

// newHashKey returns key or, if it is empty and a limit needs one, the key in the limiter's store.
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

// shortValue is the maximum length of values that are hashed without an allocation.
const shortValue = 256

// append appends half of the keyed hash of value. Half a hash rules out length extension attacks.
func (h hashKey) append(dst []byte, value string) []byte {
	var space [1 + sha256.Size + shortValue]byte
	text := append(space[:0], byte(len(h)))
	text = append(append(text, h...), value...)
	sum := sha256.Sum256(text)
	return policy.AppendKeyHash(dst, sum[:])
}
