// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// maxHeld bounds the buckets of a take without the shards' mutexes. Requests rarely have more limits.
const maxHeld = 8

// A hold is a slot that a take of several buckets has marked busy.
type hold struct {
	table        *table
	slot         *slot
	word, at     uint64 // at is 0 until now is read if the slot has no second word
	entry        *entry
	next, nextAt uint64 // both words after the take
}

// takeSeveral decides about several existing buckets, or reports that it cannot. It marks their slots busy and
// never waits for a slot, so concurrent takes of several buckets need no order.
func (s *Store) takeSeveral(dst []bucket.Snapshot, charges []store.Charge, maxWait time.Duration) ([]bucket.Snapshot, bool, bool) {
	if len(charges) > maxHeld {
		return dst, false, false
	}
	var array [maxHeld]hold
	holds := array[:len(charges)]
	for i := range holds {
		if !s.hold(&holds[i], &charges[i]) {
			release(holds[:i])
			return dst, false, false
		}
	}
	now := s.instant() // read after the last take from any of the slots
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
		// Only a holder of the shard's mutex adds second words to a table.
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

func (s *Store) hold(into *hold, c *store.Charge) bool {
	if c.Penalty != nil || c.Await > 0 {
		return false
	}
	h := s.hasher.hash(c.Key)
	for range maxSpins {
		t := s.tables[s.index(h)].Load()
		sl, word := t.find(h)
		if sl == nil || word&(locked|hasSideRow) != 0 {
			return false
		}
		if word&busy != 0 || !atomic.CompareAndSwapUint64(&sl.word, word, word|busy) {
			continue
		}
		// The other words of the slot are stable only after it is busy.
		into.table, into.slot, into.word, into.at = t, sl, word, s.secondWord(t, sl, word, 0)
		into.entry = s.entry(atomic.LoadUint64(&sl.tag))
		if sl.hasHash(h) && into.entry.limit.EqualExceptKey(&c.Limit) {
			return true
		}
		release([]hold{*into})
		return false
	}
	return false
}

func release(holds []hold) {
	for i := range holds {
		atomic.StoreUint64(&holds[i].slot.word, holds[i].word)
	}
}

func (s *Store) commitHolds(holds []hold) {
	for i := range holds {
		h := &holds[i]
		if h.nextAt != h.at && (!s.steady || h.next&virtual == 0) { // otherwise the first word is enough
			atomic.StoreUint64(h.table.secondWord(h.slot), h.nextAt)
		}
		atomic.StoreUint64(&h.slot.word, h.next|nextGeneration(h.word))
	}
}
