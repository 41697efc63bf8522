// SPDX-License-Identifier: Apache-2.0

package redisstore

// TakesInParts reports whether Redis is a cluster, where the buckets of one take can lie on several nodes. The
// store then takes in parts, and a failure can leave one part charged: see [mete.Store].
func (s *Store) TakesInParts() bool { return s.cluster }
