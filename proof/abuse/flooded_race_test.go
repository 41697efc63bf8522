// SPDX-License-Identifier: Apache-2.0

//go:build race

package abuse_test

// flooded is how many keys a flood has: fewer than without the race detector, under
// which the server takes ten times as long.
const flooded = 400_000
