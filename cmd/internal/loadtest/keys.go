// SPDX-License-Identifier: Apache-2.0

package loadtest

import "slices"

// keyOf returns the key of the i'th decision, out of n keys. Keys repeat in no order, as
// those of real clients do, and every run has the same sequence.
func keyOf(i int64, n int) int {
	x := uint64(i) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // splitmix64
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return int(x % uint64(n))
}

// A keySet is the keys that a run has used.
type keySet struct {
	keys int
	used []bool
}

func (s *keySet) add(key int) {
	if s.used == nil {
		s.used = make([]bool, s.keys)
	}
	s.used[key] = true
}

// manyDecisions is, for each key, a number of decisions that has used nearly all keys.
const manyDecisions = 16

// addFirst adds the keys of the first n decisions, or all keys.
func (s *keySet) addFirst(n int64) {
	if n > manyDecisions*int64(s.keys) {
		s.used = slices.Repeat([]bool{true}, s.keys)
		return
	}
	for i := range n {
		s.add(keyOf(i, s.keys))
	}
}

// each calls f with every key, in ascending order.
func (s *keySet) each(f func(key int)) {
	for key, used := range s.used {
		if used {
			f(key)
		}
	}
}
