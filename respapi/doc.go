// SPDX-License-Identifier: Apache-2.0

// Package respapi serves rate limit decisions over the Redis protocol (RESP2 and RESP3), for programs that already
// have a Redis client.
package respapi
