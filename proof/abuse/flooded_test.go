// SPDX-License-Identifier: Apache-2.0

//go:build !race

package abuse_test

// flooded is how many keys a flood has.
const flooded = 5_000_000
