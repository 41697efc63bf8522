// SPDX-License-Identifier: Apache-2.0

// Package resp tests the RESP server of mete with Redis and Valkey clients: go-redis, rueidis, ioredis, node-redis,
// valkey-glide, redis-cli and redis-benchmark. It also runs the commands of doc/resp.md.
package resp
