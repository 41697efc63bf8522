// SPDX-License-Identifier: Apache-2.0

//go:build race

package abuse_test

// The number of keys in a flood, and of keys that the server keeps. The race detector makes evictions from
// a full store a hundred times slower, so both are smaller.
const (
	flooded    = 100_000
	floodBound = 10_000
)

// grownMost is a weak bound: the race detector never releases its own memory, and garbage is collected
// later.
const grownMost = 512 << 20
