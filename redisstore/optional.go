// SPDX-License-Identifier: Apache-2.0

package redisstore

// TakesInParts reports whether the store is in a cluster, where the buckets of one take
// can lie on several nodes. A take is then made in parts, and a failure can leave one of
// them charged: see [mete.Store].
func (s *Store) TakesInParts() bool { return s.cluster }
