// SPDX-License-Identifier: Apache-2.0

package memstore

// For the tests outside the package.
var (
	CheckInvariants = checkInvariants
	LimitOf         = limitOf
)

// SameShard reports whether two keys live in one shard.
func (s *Store) SameShard(a, b string) bool {
	return s.index(s.hasher.hash(a)) == s.index(s.hasher.hash(b))
}

// IsAside reports whether the row of a key does not fit a slot.
func IsAside(s *Store, key string) bool {
	_, word := s.find(s.hasher.hash(key))
	return word&hasSideRow != 0
}
