// SPDX-License-Identifier: Apache-2.0

package bucket

// WithoutCost returns s before the cost that it admitted, for requests that another limit denied. For a denied cost
// it returns s.
func (s Snapshot) WithoutCost() Snapshot {
	if !s.Allowed || s.Cost <= 0 {
		return s
	}
	switch s.Limit.Algorithm() {
	case AlgorithmContinuous:
		s.spent = max(s.spent-int64(s.Cost)*s.Limit.p, 0)
	case AlgorithmConcurrency:
		s.spent = max(s.spent-int64(s.Cost), 0)
	default:
		s.spent = max(s.spent-int64(s.Cost), s.prev)
	}
	return s
}
