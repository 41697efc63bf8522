// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// mostHeld bounds the buckets that are taken from together without the mutexes
// of their shards. Requests rarely fall under more limits.
const mostHeld = 8

// A hold is a slot that a take of several buckets has marked busy.
type hold struct {
	table        *table
	slot         *slot
	word, at     uint64 // at is 0 until now is read where the slot has no second word
	entry        *entry
	next, nextAt uint64 // both words after the take
}

// takeSeveral decides about several buckets that are all there, or says that it
// cannot. It marks their slots busy, and waits for none: so takes of several
// buckets need no order among them.
func (s *Store) takeSeveral(dst []bucket.Snapshot, charges []store.Charge, maxWait time.Duration) ([]bucket.Snapshot, bool, bool) {
	if len(charges) > mostHeld {
		return dst, false, false
	}
	var array [mostHeld]hold
	holds := array[:len(charges)]
	for i := range holds {
		if !s.hold(&holds[i], &charges[i]) {
			release(holds[:i])
			return dst, false, false
		}
	}
	now := s.instant() // not before the last take from any of the slots
	mark, allowed := len(dst), true
	dst = slices.Grow(dst, len(charges))[:mark+len(charges)]
	for i := range holds {
		c, h := &charges[i], &holds[i]
		var state bucket.State
		if s.steady && h.word&virtual != 0 {
			h.at = uint64(now)
		}
		s.decodeTo(&state, h.word, h.at, h.entry)
		v := c.Limit.SpendOn(&state, now, c.Cost, maxWait)
		v.Show(&dst[mark+i], &c.Limit, c.Cost, now)
		if !v.Allowed() {
			allowed = false
			continue
		}
		var ok bool
		h.next, h.nextAt, ok = s.encode(&state, h.entry)
		// A table without second words gets them under the shard's mutex alone.
		if !ok || s.steady && h.word&^h.next&virtual != 0 {
			release(holds)
			return dst[:mark], false, false
		}
	}
	if allowed {
		s.commitHolds(holds)
		return dst, true, true
	}
	for i := range holds {
		if c, h, snap := &charges[i], &holds[i], &dst[mark+i]; snap.Allowed { // show it uncharged
			*snap = c.Limit.Peek(s.decode(h.word, h.at, h.entry), now, c.Cost, maxWait)
		}
	}
	release(holds)
	return dst, false, true
}

// hold marks the charge's slot busy, or says that there is none to be had.
func (s *Store) hold(into *hold, c *store.Charge) bool {
	h := s.hasher.hash(c.Key)
	for range spins {
		t := s.tables[s.index(h)].Load()
		sl, word := t.find(h)
		if sl == nil || word&(locked|aside) != 0 {
			return false
		}
		if word&busy != 0 || !atomic.CompareAndSwapUint64(&sl.word, word, word|busy) {
			continue
		}
		// Only now do the slot's other words belong to this one.
		into.table, into.slot, into.word, into.at = t, sl, word, s.second(t, sl, word, 0)
		into.entry = s.entry(atomic.LoadUint64(&sl.tag))
		if sl.holds(h) && into.entry.limit.Same(&c.Limit) {
			return true
		}
		release([]hold{*into})
		return false
	}
	return false
}

// release leaves slots as they were.
func release(holds []hold) {
	for i := range holds {
		atomic.StoreUint64(&holds[i].slot.word, holds[i].word)
	}
}

// commitHolds writes the states of an admitted take, which ends the holds.
func (s *Store) commitHolds(holds []hold) {
	for i := range holds {
		h := &holds[i]
		if h.nextAt != h.at && (!s.steady || h.next&virtual == 0) { // else next tells all
			atomic.StoreUint64(h.table.at(h.slot), h.nextAt)
		}
		atomic.StoreUint64(&h.slot.word, h.next|bump(h.word))
	}
}
