// SPDX-License-Identifier: Apache-2.0

//go:build !race

package abuse_test

// The number of keys in a flood, and of keys that the server keeps.
const (
	flooded    = 5_000_000
	floodBound = 100_000
)

// grownMost is the memory that the server may gain after its store is full. It covers garbage; the keys of
// a flood would need five times as much.
const grownMost = 32 << 20
