// SPDX-License-Identifier: Apache-2.0

package bucket

// Without returns what the bucket looked like before the cost that it admitted:
// for requests that other limits denied after all. A denied cost has changed
// nothing, and s is returned as it is.
func (s Snapshot) Without() Snapshot {
	if !s.Allowed || s.Cost <= 0 {
		return s
	}
	if s.Limit.Algorithm() == Continuous {
		s.spent = max(s.spent-int64(s.Cost)*s.Limit.p, 0)
	} else {
		s.spent = max(s.spent-int64(s.Cost), s.prev)
	}
	return s
}
