// SPDX-License-Identifier: Apache-2.0

package loadtest

// keyOf returns the key of the i'th decision, out of n keys. Keys repeat in no order, as
// those of real clients do, and every run has the same sequence.
func keyOf(i int64, n int) int {
	x := uint64(i) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // splitmix64
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return int(x % uint64(n))
}
