// SPDX-License-Identifier: Apache-2.0

package topkeys_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
)

// keysOf returns n keys of a rule, by the number that each has.
func keysOf(n int, number func(i int) uint64) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "free:path=/v1/users/" + strconv.FormatUint(number(i), 10)
	}
	return keys
}

// A stream is the keys of records, in their order. The adversarial ones are made to
// be as hard as they can for m counters.
type stream struct {
	name string
	keys func(r *rand.Rand, n, m int) []string
}

func streams() []stream {
	list := []stream{
		{"uniform over 10 m", func(r *rand.Rand, n, m int) []string {
			return keysOf(n, func(int) uint64 { return r.Uint64N(uint64(10 * m)) })
		}},
		{"uniform over m", func(r *rand.Rand, n, m int) []string {
			return keysOf(n, func(int) uint64 { return r.Uint64N(uint64(m)) })
		}},
		{"all different", func(_ *rand.Rand, n, _ int) []string {
			return keysOf(n, func(i int) uint64 { return uint64(i) })
		}},
		{"one key", func(_ *rand.Rand, n, _ int) []string {
			return keysOf(n, func(int) uint64 { return 7 })
		}},
		// Every record displaces a counter, and none ever meets its own again.
		{"m+1 keys in turn", func(_ *rand.Rand, n, m int) []string {
			return keysOf(n, func(i int) uint64 { return uint64(i % (m + 1)) })
		}},
		// One key is just above N/m; between its records come enough new keys to displace the lowest.
		{"churn against a key above N/m", func(_ *rand.Rand, n, m int) []string {
			return keysOf(n, func(i int) uint64 {
				if i%max(m-1, 1) == 0 {
					return 0
				}
				return uint64(i + 1)
			})
		}},
		// The same key, all of it at the beginning, and then nothing but churn.
		{"a key first, then churn", func(_ *rand.Rand, n, m int) []string {
			return keysOf(n, func(i int) uint64 {
				if i <= n/m+1 {
					return 0
				}
				return uint64(i)
			})
		}},
		{"churn, then a key", func(_ *rand.Rand, n, m int) []string {
			return keysOf(n, func(i int) uint64 {
				if i >= n-n/m-1 {
					return 0
				}
				return uint64(i + 1)
			})
		}},
		// Sorted: each key has all its records at once.
		{"bursts, longer ones later", func(_ *rand.Rand, n, m int) []string {
			return keysOf(n, func(i int) uint64 { return triangle(i) })
		}},
		{"bursts, longer ones first", func(_ *rand.Rand, n, m int) []string {
			keys := keysOf(n, func(i int) uint64 { return triangle(i) })
			slices.Reverse(keys)
			return keys
		}},
	}
	for _, s := range []float64{1.01, 1.1, 1.3, 1.5, 2, 3} {
		list = append(list, stream{fmt.Sprintf("Zipf %v", s), func(r *rand.Rand, n, _ int) []string {
			zipf := rand.NewZipf(r, s, 1, 1<<20)
			return keysOf(n, func(int) uint64 { return zipf.Uint64() })
		}})
	}
	return list
}

// triangle numbers bursts: the k-th has k records.
func triangle(i int) uint64 {
	k := uint64(0)
	for i >= 0 {
		k++
		i -= int(k)
	}
	return k
}
