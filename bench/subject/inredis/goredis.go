// SPDX-License-Identifier: Apache-2.0

package inredis

import "github.com/redis/go-redis/v9"

// newGoRedis returns a client with the settings that go-redis comes with: of
// them the pool matters, 10 connections a processor. With one for each of 256
// callers redis_rate gains no more than a tenth.
func newGoRedis(addr string) (client *redis.Client, closeClient func()) {
	client = redis.NewClient(&redis.Options{Addr: addr})
	return client, func() { _ = client.Close() }
}
