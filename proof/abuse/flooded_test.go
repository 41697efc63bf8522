// SPDX-License-Identifier: Apache-2.0

//go:build !race

package abuse_test

// A flood has so many keys, of which the server keeps so many.
const (
	flooded    = 5_000_000
	floodBound = 100_000
)

// grownMost is how much memory the server may hold beyond what it held when it had as
// many as it keeps: the garbage collector's own room, not the keys', which would be
// five times this.
const grownMost = 32 << 20
