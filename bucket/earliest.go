// SPDX-License-Identifier: Apache-2.0

package bucket

import "time"

// Earliest returns how long it takes until cost more has come back, in as many
// pieces as it needs, if nobody else takes: how long the last of a queue waits.
// What may be owed makes no difference to it. It is exact for token buckets; of
// sliding limits it is a lower bound that counts whole windows only. A limit
// that does not refill says [Never]. Other limits return at most [Longest].
func (s Snapshot) Earliest(cost Tokens) time.Duration { return duration(s.earliest(cost)) }

// earliest is Earliest in microseconds.
func (s *Snapshot) earliest(cost Tokens) int64 {
	l := &s.Limit
	if cost = min(max(cost, 0), 1<<62); cost > 0 && l.n == 0 {
		return never
	}
	switch l.Algorithm() {
	case SlidingLog: // a window may begin at any instant; the entries are not known here
		return product(int64(max(cost-1, 0)/l.capacity), l.p)
	case SlidingWindow: // windows lie fixed, and none admits more than the limit
		beyond := int64(cost-l.capacity) + s.spent - s.prev
		if beyond <= 0 {
			return 0
		}
		return sum(product(ceilDiv(beyond, int64(l.capacity)), l.p), s.behind)
	}
	unit := l.Unit()
	if l.n == 0 || s.spent == 0 && cost <= l.capacity {
		return 0
	}
	if most := (1<<62 - 1) / unit; int64(cost) > most {
		cost = Tokens(most) // as good as for ever
	}
	lack := int64(cost)*unit + s.spent - int64(l.capacity)*unit
	if lack <= 0 {
		return 0
	}
	return l.after(lack, s.behind)
}
