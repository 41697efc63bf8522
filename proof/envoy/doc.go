// SPDX-License-Identifier: Apache-2.0

// Package envoy compares mete with envoyproxy/ratelimit, and runs the programs that call rate limit services.
//
// The directories original and tools have modules of their own, because these programs need other versions of the
// libraries that mete uses.
package envoy
