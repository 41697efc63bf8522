// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/metehq/mete/internal/sharedkey"
)

// DeriveKey implements [store.KeyDeriver]: the key is the same in every process that uses the same Redis and
// prefix. It is derived from the secret at {prefix}secret. DeriveKey creates the secret if it is missing.
//
// The secret is stored alongside the hashes, so a reader of all of Redis can find the client of a bucket by trying
// values. FLUSHALL or an eviction loses the secret: processes that start later create a new one, and running
// processes keep the old one. A policy.Options.HashKey has neither weakness.
func (s *Store) DeriveKey(ctx context.Context, purpose string) ([sha256.Size]byte, error) {
	client, key := s.client, s.config.Prefix+"secret"
	fresh := client.B().Set().Key(key).Value(rand.Text() + rand.Text()).Nx().Build()
	err := client.Do(ctx, fresh).Error()
	if err != nil && !rueidis.IsRedisNil(err) {
		return [sha256.Size]byte{}, fmt.Errorf("redisstore: derive key: %w", err)
	}
	secret, err := client.Do(ctx, client.B().Get().Key(key).Build()).ToString()
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("redisstore: derive key: %w", err)
	}
	return sharedkey.Derive(purpose, secret), nil
}
