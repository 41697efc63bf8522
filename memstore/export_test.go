// SPDX-License-Identifier: Apache-2.0

package memstore

// For tests outside of the package.
var (
	CheckInvariants = checkInvariants
	LimitOf         = limitOf
)

// SameShard reports whether two keys are in one shard.
func (s *Store) SameShard(a, b string) bool {
	return s.index(s.hasher.hash(a)) == s.index(s.hasher.hash(b))
}

// IsAside reports whether a key has a side row.
func IsAside(s *Store, key string) bool {
	_, word := s.find(s.hasher.hash(key))
	return word&hasSideRow != 0
}
