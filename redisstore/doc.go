// SPDX-License-Identifier: Apache-2.0

// Package redisstore keeps buckets in Redis.
package redisstore
