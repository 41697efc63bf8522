// SPDX-License-Identifier: Apache-2.0

// Package envoy compares the policies of mete convert with envoyproxy/ratelimit. It builds that program with
// the go.mod of testdata/ratelimit, and runs it with a Redis.
package envoy
