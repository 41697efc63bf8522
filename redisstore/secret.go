// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"github.com/redis/rueidis"
)

// DeriveKey returns a key for a purpose that is the same for all nodes with the
// same prefix: it is derived from a secret at {prefix}secret, which is made
// where there is none. Who hashes parts of bucket keys, like
// policy.Options.HashKey, shares the buckets with the others that way.
//
// The secret lies beside the hashes: whoever can read all of Redis can try out
// whose a bucket is. And it is as lasting as Redis: where that has forgotten it, a
// node that begins later makes another, while those that run keep theirs. A
// secret from elsewhere has neither fault.
func (n *Node) DeriveKey(ctx context.Context, purpose string) ([sha256.Size]byte, error) {
	client, key := n.client, n.prefix+"secret"
	fresh := client.B().Set().Key(key).Value(rand.Text() + rand.Text()).Nx().Build()
	err := client.Do(ctx, fresh).Error()
	if err != nil && !rueidis.IsRedisNil(err) {
		return [sha256.Size]byte{}, fmt.Errorf("redisstore: derive key: %w", err)
	}
	secret, err := client.Do(ctx, client.B().Get().Key(key).Build()).ToString()
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("redisstore: derive key: %w", err)
	}
	return sha256.Sum256([]byte("mete " + purpose + "\x00" + secret)), nil
}
