// SPDX-License-Identifier: Apache-2.0

package bucket

import "time"

// RefillAfter returns the time until cost more tokens have refilled if nothing else is taken, even if they exceed the
// capacity or the debt limit. The last caller of a queue waits that long. The result is exact for token buckets, a lower
// bound for sliding limits, and 0 for concurrency limits. It is [Never] for a limit without refill, and otherwise at
// most [LongestWait].
func (s Snapshot) RefillAfter(cost Tokens) time.Duration { return duration(s.refillAfter(cost)) }

func (s *Snapshot) refillAfter(cost Tokens) int64 {
	l := &s.Limit
	if cost = min(max(cost, 0), 1<<62); cost > 0 && l.n == 0 {
		return never
	}
	switch l.Algorithm() {
	case AlgorithmSlidingLog: // a window may begin at any instant, and the entries are unknown here
		return saturatingMul(int64(max(cost-1, 0)/l.capacity), l.p)
	case AlgorithmSlidingWindow: // no aligned window admits more than the limit
		beyond := int64(cost-l.capacity) + s.spent - s.prev
		if beyond <= 0 {
			return 0
		}
		return saturatingAdd(saturatingMul(ceilDiv(beyond, int64(l.capacity)), l.p), s.behind)
	}
	if l.Algorithm() == AlgorithmConcurrency { // slots may be released at any time
		return 0
	}
	unit := l.Unit()
	if l.n == 0 || s.spent == 0 && cost <= l.capacity {
		return 0
	}
	if most := (1<<62 - 1) / unit; int64(cost) > most {
		cost = Tokens(most) // far longer than LongestWait
	}
	lack := int64(cost)*unit + s.spent - int64(l.capacity)*unit
	if lack <= 0 {
		return 0
	}
	return s.refillTime(lack)
}
