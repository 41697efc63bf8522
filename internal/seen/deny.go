// SPDX-License-Identifier: Apache-2.0

package seen

import (
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// Deny denies a take if the memory proves that the store would, and appends the snapshots that the store would
// return. It leaves partial takes, reservations and Fresh takes to the store. The same applies to takes with an ID,
// which the store may have admitted before, and to takes with shards. It also leaves takes with slots to the store, because
// requests release slots at any time. If time runs backwards, it denies nothing.
func (m *Memory) Deny(dst []bucket.Snapshot, charges []store.Charge, mode store.Mode, now bucket.Instant) ([]bucket.Snapshot, bool) {
	if !m.Denies() || !isPlain(&mode) || mode.Fresh || mode.ID != "" && !mode.DryRun {
		return dst, false
	}
	for i := range charges {
		if charges[i].Shards > 1 || isSlot(&charges[i]) {
			return dst, false
		}
		if _, s := m.set(charges[i].Key); !m.mayDeny(s, now) {
			return dst, false
		}
	}
	first, denied := len(dst), false
	for i := range charges {
		snap, denies, known := m.lookUp(&charges[i], now)
		if !known {
			return dst[:first], false
		}
		dst, denied = append(dst, snap), denied || denies
	}
	if !denied {
		return dst[:first], false
	}
	m.denied.Add(1)
	return dst, true
}

func isSlot(c *store.Charge) bool { return c.Limit.Algorithm() == bucket.AlgorithmConcurrency }

// lookUp returns the store's current snapshot of a bucket, and whether it must deny. known is false if the memory
// cannot tell.
func (m *Memory) lookUp(c *store.Charge, now bucket.Instant) (snap bucket.Snapshot, denies, known bool) {
	hash, s := m.set(c.Key)
	s.mu.Lock()
	i := s.find(hash)
	if i < 0 || now < s.seen[i].at || now >= s.seen[i].until || s.seen[i].snap.Limit != c.Limit {
		s.mu.Unlock()
		return snap, false, false
	}
	snap = s.seen[i].snap
	sent, at := s.seen[i].sent, s.seen[i].at
	s.mu.Unlock()

	if snap, known = m.withCost(snap, c); !known {
		return snap, false, false
	}
	// The store may have read the bucket as early as sent. Both clocks round to microseconds, so the store may
	// admit two microseconds earlier.
	denies = snap.RetryAfter-2*time.Microsecond >= elapsed(sent, now)
	if !knowsPenalty(&snap, c, elapsed(sent, now)) {
		return snap, false, false
	}
	return snap.After(elapsed(at, now)), denies, true
}

// knowsPenalty reports whether the memory knows the penalty of c after the time since snap. Without a running penalty, a
// denial starts one in the store.
func knowsPenalty(snap *bucket.Snapshot, c *store.Charge, since time.Duration) bool {
	left, _ := snap.Penalty()
	if c.Penalty == nil {
		return left == 0
	}
	return snap.Allowed || left-2*time.Microsecond >= since
}

func elapsed(from, to bucket.Instant) time.Duration {
	return time.Duration(to-from) * time.Microsecond
}

// withCost returns snap for the cost of c, and whether the memory knows it.
func (m *Memory) withCost(snap bucket.Snapshot, c *store.Charge) (_ bucket.Snapshot, known bool) {
	if snap.Limit.Algorithm() != bucket.AlgorithmSlidingLog && !c.Leased {
		snap.Cost, snap.RetryAfter = c.Cost, snap.RoomAfter(c.Cost)
		snap.Allowed = snap.RetryAfter == 0
		return snap, true
	}
	// A snapshot of these limits contains the wait for its own cost only.
	switch {
	case m.config.DenyExactly:
		return snap, false
	case c.Cost == snap.Cost && !snap.Allowed:
	case c.Cost > snap.Limit.Capacity():
		snap.Allowed, snap.RetryAfter = false, bucket.Never
	case 0 < c.Cost && c.Cost <= snap.Remaining():
		snap.Allowed, snap.RetryAfter = true, 0
	default:
		return snap, false
	}
	snap.Cost = c.Cost
	return snap, true
}
