// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// The slots of concurrency limits are apart from the buckets, in stripes with a mutex each. A take that needs both locks the
// stripes first, and holds them while the buckets decide: both change in one step.

const (
	slotStripes = 16 // a power of two, and at most the number of shards

	// keepEnded is how long a key stays after its last slot has ended, so that a clock that steps back finds it.
	keepEnded = time.Minute

	// sweptPerKey is the number of keys that a new key visits to remove idle ones.
	sweptPerKey = 2

	slotSweepEvery = time.Second
)

type slots struct {
	stripes [slotStripes]slotStripe
	used    atomic.Int64 // upper bound of the slots, at most Config.MaxKeys
	sweptAt atomic.Int64 // instant of the last sweep of a full store
}

type slotStripe struct {
	mu   sync.Mutex // guards sets, their contents included
	sets map[hash]*slotSet
}

// A slotSet holds the slots of one key. It stays without slots until a new key sweeps it, because the next request of its
// key usually follows soon.
type slotSet struct {
	held   bucket.Slots
	family string // of the key: see [store.Family]
}

func isSlot(c *store.Charge) bool { return c.Limit.Algorithm() == bucket.AlgorithmConcurrency }

// slotKey returns the hash of a key and the number of its stripe.
func (s *Store) slotKey(key string) (hash, int) {
	h := s.hasher.hash(key)
	return h.withoutNumber(), int(h.h0 % slotStripes) // as in a saved file
}

// lockSlots locks the stripes of all slots among the charges in ascending order, and returns them as bits.
func (s *Store) lockSlots(charges []store.Charge) (locked uint32) {
	for i := range charges {
		if isSlot(&charges[i]) {
			_, stripe := s.slotKey(charges[i].Key)
			locked |= 1 << stripe
		}
	}
	for i := range s.slots.stripes {
		if locked>>i&1 == 1 {
			s.slots.stripes[i].mu.Lock()
		}
	}
	return locked
}

func (s *Store) unlockSlots(locked uint32) {
	for i := range s.slots.stripes {
		if locked>>i&1 == 1 {
			s.slots.stripes[i].mu.Unlock()
		}
	}
}

// takeSlots is Take for charges with at least one slot.
func (s *Store) takeSlots(dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool) {
	if len(charges) == 1 && mode.ID == "" && !mode.DryRun && !mode.Renew {
		if dst, allowed, ok := s.takeOneSlot(dst, &charges[0]); ok {
			return dst, allowed
		}
	}
	if mode.ID == "" || mode.DryRun || mode.Renew {
		locked := s.lockSlots(charges)
		defer s.unlockSlots(locked)
		return s.takeSlotsLocked(dst, charges, mode)
	}
	name := s.hashID("take", mode.ID, len(charges), func(i int) string { return charges[i].Key })
	stripe := s.ids.lock(name)
	defer stripe.mu.Unlock()
	locked := s.lockSlots(charges)
	defer s.unlockSlots(locked)
	now := s.instant()
	if d := stripe.lookup(name, now); d != nil && s.holdsSlots(charges, now) {
		return append(dst, d.snaps...), true
	}
	mark := len(dst)
	dst, allowed := s.takeSlotsLocked(dst, charges, mode)
	if allowed {
		now := s.instant()
		stripe.record(&idRecord{name, now.Add(store.RetryHorizon), slices.Clone(dst[mark:])}, now)
	}
	return dst, allowed
}

// takeOneSlot takes one slot of a key that the store knows. It returns false for other keys and in a full store.
func (s *Store) takeOneSlot(dst []bucket.Snapshot, c *store.Charge) (_ []bucket.Snapshot, allowed, ok bool) {
	h, i := s.slotKey(c.Key)
	t := &s.slots.stripes[i]
	t.mu.Lock()
	set := t.sets[h]
	if set == nil || s.slots.used.Load() >= s.maxKeys {
		t.mu.Unlock()
		return dst, false, false
	}
	now, before := s.instant(), len(set.held.All())
	v := set.held.Take(&c.Limit, c.Slot, now, c.Cost)
	if more := len(set.held.All()) - before; more != 0 {
		s.slots.used.Add(int64(more))
	}
	t.mu.Unlock()
	dst = slices.Grow(dst, 1)[:len(dst)+1]
	v.Show(&dst[len(dst)-1], &c.Limit, min(c.Cost, bucket.Token), now)
	return dst, v.Allowed(), true
}

// holdsSlots reports whether all slots of the charges are held. A retry of a take is a new take once they have ended.
func (s *Store) holdsSlots(charges []store.Charge, now bucket.Instant) bool {
	for i := range charges {
		if c := &charges[i]; isSlot(c) && c.Cost > 0 {
			if set, _ := s.findSlots(c.Key); set == nil || !set.held.Holds(c.Slot, now) {
				return false
			}
		}
	}
	return true
}

func (s *Store) findSlots(key string) (*slotSet, hash) {
	h, stripe := s.slotKey(key)
	return s.slots.stripes[stripe].sets[h], h
}

// takeSlotsLocked decides about the slots, and then about the buckets. It takes the slots if all of them admit the take.
func (s *Store) takeSlotsLocked(dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool) {
	now, mark := s.instant(), len(dst)
	dst = slices.Grow(dst, len(charges))[:mark+len(charges)]
	allowed := s.peekSlots(dst[mark:], charges, now, mode)
	if others := withoutSlots(charges); len(others) > 0 {
		var snaps []bucket.Snapshot
		snaps, allowed = s.takeBeside(nil, others, mode, allowed)
		showBuckets(dst[mark:], charges, snaps)
	}
	if allowed && !mode.DryRun {
		s.putSlots(dst[mark:], charges, now, mode.Renew)
	}
	return dst, allowed
}

func withoutSlots(charges []store.Charge) (others []store.Charge) {
	for i := range charges {
		if !isSlot(&charges[i]) {
			others = append(others, charges[i])
		}
	}
	return others
}

// peekSlots fills in the snapshots of the slots, and reports whether all of them are allowed.
func (s *Store) peekSlots(snaps []bucket.Snapshot, charges []store.Charge, now bucket.Instant, mode mete.Mode) (allowed bool) {
	found := spills{}
	allowed = true
	for i := range charges {
		c := &charges[i]
		if !isSlot(c) {
			continue
		}
		v, spill := s.peekSlot(c, now, mode.Renew)
		v.Show(&snaps[i], &c.Limit, min(c.Cost, bucket.Token), now)
		snaps[i].Spill, found[spill] = spill, true
		allowed = allowed && v.Allowed()
	}
	s.countSpills(found, mode.DryRun)
	return allowed
}

// showBuckets copies the snapshots of the charges that are no slots.
func showBuckets(snaps []bucket.Snapshot, charges []store.Charge, buckets []bucket.Snapshot) {
	for i := range charges {
		if !isSlot(&charges[i]) {
			snaps[i], buckets = buckets[0], buckets[1:]
		}
	}
}

// putSlots takes or renews the slots that peekSlots has allowed.
func (s *Store) putSlots(snaps []bucket.Snapshot, charges []store.Charge, now bucket.Instant, renew bool) {
	for i := range charges {
		if c := &charges[i]; isSlot(c) && c.Cost > 0 && snaps[i].Spill == bucket.SpillNone {
			s.putSlot(c, now, renew).Show(&snaps[i], &c.Limit, bucket.Token, now)
		}
	}
}

// peekSlot decides about one slot. Requests cannot share a slot, so a full store denies new slots unless the charge has
// [store.OnFullOpen]. The request then passes without a slot, and so do its renewals.
func (s *Store) peekSlot(c *store.Charge, now bucket.Instant, renew bool) (bucket.Verdict, bucket.Spill) {
	set, _ := s.findSlots(c.Key)
	held := bucket.Slots{}
	if set != nil {
		held = set.held
	}
	v := held.Peek(&c.Limit, c.Slot, now, c.Cost)
	if renew {
		v = held.PeekRenewal(c.Slot, now)
	}
	opens := c.OnFull == store.OnFullOpen
	if c.Cost <= 0 || v.Allowed() == renew || renew && !opens || held.Holds(c.Slot, now) || !s.isFullOfSlots(now) {
		return v, bucket.SpillNone
	}
	if opens {
		return bucket.Verdict{}, bucket.SpillOpened
	}
	return bucket.SlotsVerdict(0, 0, 0, store.FullRetry), bucket.SpillClosed
}

// isFullOfSlots reports whether the store has no space for a slot. It looks for ended slots at most once per second, because
// it visits all of them.
func (s *Store) isFullOfSlots(now bucket.Instant) bool {
	if s.slots.used.Load() < s.maxKeys {
		return false
	}
	last := bucket.Instant(s.slots.sweptAt.Load())
	if now < last || now >= last.Add(slotSweepEvery) {
		s.slots.sweptAt.Store(int64(now))
		s.sweepAllSlots(now)
	}
	return s.slots.used.Load() >= s.maxKeys
}

func (s *Store) putSlot(c *store.Charge, now bucket.Instant, renew bool) bucket.Verdict {
	h, stripe := s.slotKey(c.Key)
	sets := &s.slots.stripes[stripe].sets
	set := (*sets)[h]
	if set == nil {
		s.sweepSlots(*sets, now, sweptPerKey)
		if set = (&slotSet{family: strings.Clone(store.Family(c.Key))}); *sets == nil {
			*sets = map[hash]*slotSet{}
		}
		(*sets)[h] = set
	}
	before := len(set.held.All())
	var v bucket.Verdict
	if renew {
		v = set.held.Renew(&c.Limit, c.Slot, now)
	} else {
		v = set.held.Take(&c.Limit, c.Slot, now, c.Cost)
	}
	s.slots.used.Add(int64(len(set.held.All()) - before))
	return v
}

// sweepSlots removes up to most idle keys of a stripe, at random.
func (s *Store) sweepSlots(sets map[hash]*slotSet, now bucket.Instant, most int) {
	visited := 0
	for h, set := range sets {
		if all := set.held.All(); len(all) == 0 || all[len(all)-1].End.Add(keepEnded) < now {
			s.slots.used.Add(int64(-len(all)))
			delete(sets, h)
		}
		if visited++; visited == most {
			return
		}
	}
}

// sweepAllSlots removes the ended slots from all stripes except locked ones.
func (s *Store) sweepAllSlots(now bucket.Instant) {
	for i := range s.slots.stripes {
		if stripe := &s.slots.stripes[i]; stripe.mu.TryLock() {
			for h, set := range stripe.sets {
				all, live := len(set.held.All()), set.held.Unexpired(now)
				s.slots.used.Add(int64(len(live) - all))
				if len(live) == 0 {
					delete(stripe.sets, h)
				} else if len(live) < all {
					set.held = bucket.NewSlots(slices.Clone(live))
				}
			}
			stripe.mu.Unlock()
		}
	}
}

// releaseSlots releases the slots among the refunds, and returns the other refunds.
func (s *Store) releaseSlots(refunds []mete.Refund) (others []mete.Refund) {
	for i := range refunds {
		c := &refunds[i].Charge
		if !isSlot(c) {
			others = append(others, refunds[i])
			continue
		}
		h, stripe := s.slotKey(c.Key)
		t := &s.slots.stripes[stripe]
		t.mu.Lock()
		if set := t.sets[h]; set != nil && set.held.Release(c.Slot) {
			s.slots.used.Add(-1)
		}
		t.mu.Unlock()
	}
	return others
}

func (s *Store) resetSlots(keys []string) {
	for _, key := range keys {
		h, stripe := s.slotKey(key)
		t := &s.slots.stripes[stripe]
		t.mu.Lock()
		s.dropSlots(t, h)
		t.mu.Unlock()
	}
}

func (s *Store) dropSlots(t *slotStripe, h hash) {
	if set := t.sets[h]; set != nil {
		s.slots.used.Add(int64(-len(set.held.All())))
		delete(t.sets, h)
	}
}

// clearSlots frees the slots of a stripe with a key of one of the families.
func (s *Store) clearSlots(stripe int, families []string) (removed int64) {
	t := &s.slots.stripes[stripe]
	t.mu.Lock()
	defer t.mu.Unlock()
	for h, set := range t.sets {
		if set.family != "" && slices.Contains(families, set.family) {
			s.dropSlots(t, h)
			removed++
		}
	}
	return removed
}

// Slots implements [store.SlotLister].
func (s *Store) Slots(_ context.Context, key string, most int) ([]bucket.Slot, bucket.Instant, error) {
	h, stripe := s.slotKey(key)
	t := &s.slots.stripes[stripe]
	t.mu.Lock()
	defer t.mu.Unlock()
	now := s.instant()
	set := t.sets[h]
	if set == nil {
		return nil, now, nil
	}
	live := set.held.Unexpired(now)
	return slices.Clone(live[:min(len(live), max(most, 0))]), now, nil
}
