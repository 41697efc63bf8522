// SPDX-License-Identifier: Apache-2.0

package inredis

import "github.com/redis/go-redis/v9"

// newGoRedis returns a client with go-redis's default settings, such as 10 connections per processor. With a
// connection for each of 256 callers, redis_rate gains at most a tenth.
func newGoRedis(addr string) (client *redis.Client, closeClient func()) {
	client = redis.NewClient(&redis.Options{Addr: addr})
	return client, func() { _ = client.Close() }
}
