// SPDX-License-Identifier: Apache-2.0

// Package envoy proves that a policy that mete convert writes for envoyproxy/ratelimit
// decides as the original does. It builds the original from its module, with the
// go.mod of testdata/ratelimit, and runs it with a Redis. It is all tests.
package envoy
