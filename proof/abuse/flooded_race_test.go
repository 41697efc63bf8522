// SPDX-License-Identifier: Apache-2.0

//go:build race

package abuse_test

// A flood has so many keys, of which the server keeps so many: fewer than without the
// race detector, under which a full store looks for room a hundred times as long.
const (
	flooded    = 100_000
	floodBound = 10_000
)

// grownMost says little here: the race detector's own memory grows with what was ever
// used, and garbage waits longer.
const grownMost = 512 << 20
