// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// The model of slots is a map from the ID of each slot to its end. Every question counts and sorts them.

func isSlot(c *store.Charge) bool { return c.Limit.Algorithm() == bucket.AlgorithmConcurrency }

// endsAt returns the ends of the slots of a key that have not ended, in their order.
func (s *Model) endsAt(key string, now bucket.Instant) (ends []bucket.Instant) {
	for _, end := range s.slots[key] {
		if end > now {
			ends = append(ends, end)
		}
	}
	slices.Sort(ends)
	return ends
}

func (s *Model) holdsSlot(c *store.Charge, now bucket.Instant) bool {
	return s.slots[c.Key][c.Slot] > now
}

// showSlot returns the snapshot of a decision about a slot with this wait.
func (s *Model) showSlot(c *store.Charge, now bucket.Instant, wait time.Duration) (snap bucket.Snapshot) {
	ends := s.endsAt(c.Key, now)
	next, last := time.Duration(0), time.Duration(0)
	if len(ends) > 0 {
		next, last = since(ends[0], now), since(ends[len(ends)-1], now)
	}
	v := bucket.SlotsVerdict(len(ends), next, last, wait)
	v.Show(&snap, &c.Limit, min(c.Cost, bucket.Token), now)
	return snap
}

func since(end, now bucket.Instant) time.Duration { return time.Duration(end-now) * time.Microsecond }

func (s *Model) decideSlot(c *store.Charge, now bucket.Instant, renew bool) bucket.Snapshot {
	wait := time.Duration(0)
	switch ends := s.endsAt(c.Key, now); {
	case renew && !s.holdsSlot(c, now):
		wait = bucket.Never
	case !renew && c.Cost > 0 && !s.holdsSlot(c, now) && bucket.Tokens(len(ends))*bucket.Token >= c.Limit.Capacity():
		wait = since(ends[len(ends)-int(c.Limit.Capacity()/bucket.Token)], now)
	}
	return s.showSlot(c, now, wait)
}

func (s *Model) putSlot(c *store.Charge, now bucket.Instant) bucket.Snapshot {
	held := s.slots[c.Key]
	if held == nil {
		held = map[bucket.SlotID]bucket.Instant{}
		s.slots[c.Key] = held
	}
	for id, end := range held {
		if end <= now {
			delete(held, id)
		}
	}
	_, lease := c.Limit.Refill()
	held[c.Slot] = now + bucket.Instant(lease)
	return s.showSlot(c, now, 0)
}

// takeSlots is Take for charges with at least one slot.
func (s *Model) takeSlots(dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	now, name := s.now(), ""
	if mode.ID != "" && !mode.DryRun && !mode.Renew {
		name = nameOf(mode.ID, charges)
		snaps, ok := s.admitted.recall(name, now)
		for i := range charges {
			ok = ok && (!isSlot(&charges[i]) || charges[i].Cost == 0 || s.holdsSlot(&charges[i], now))
		}
		if ok {
			return append(dst, snaps...), true, nil
		}
	}
	var others []store.Charge
	allowed := true
	for i := range charges {
		if c := &charges[i]; isSlot(c) {
			allowed = allowed && s.decideSlot(c, now, mode.Renew).Allowed
		} else {
			others = append(others, *c)
		}
	}
	snaps, fits := s.take(nil, others, mode, now, allowed)
	commits := fits && !mode.DryRun
	first := len(dst)
	for i := range charges {
		switch c := &charges[i]; {
		case !isSlot(c):
			dst, snaps = append(dst, snaps[0]), snaps[1:]
		case commits && c.Cost > 0:
			dst = append(dst, s.putSlot(c, now))
		default:
			dst = append(dst, s.decideSlot(c, now, mode.Renew))
		}
	}
	if commits && name != "" {
		s.admitted.remember(name, now, dst[first:])
	}
	return dst, fits, nil
}
