// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// A cell is one charge's bucket in a take under locks.
type cell struct {
	own      hash // of the charge's key
	overflow hash // of the overflow bucket of the charge's limit
	rate     uint64
	spilled  bool // the bucket is the overflow bucket

	slot   *slot // nil: an absent bucket of a dry run
	placed bool  // the slot is new
	first  int   // the first cell with this slot: itself, unless charges share a bucket

	before, after bucket.State
}

func (c *cell) hash() hash {
	if c.spilled {
		return c.overflow
	}
	return c.own
}

// A transaction is a take under locks. They are pooled.
type transaction struct {
	cells  []cell
	shards []int          // to lock, in ascending order
	now    bucket.Instant // read once all slots are locked
}

var transactions = sync.Pool{New: func() any { return new(transaction) }}

// takeLocked decides about any number of buckets under the locks of their
// shards.
func (s *Store) takeLocked(dst []bucket.Snapshot, charges []mete.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	tx := transactions.Get().(*transaction)
	defer transactions.Put(tx)
	tx.cells = slices.Grow(tx.cells[:0], len(charges))[:len(charges)]
	for i := range charges {
		rate, err := s.rateOf(charges[i].Limit)
		if err != nil {
			return dst, false, &mete.StoreError{Op: "take", Store: "memstore", Spent: mete.NotSpent, Err: err}
		}
		tx.cells[i] = cell{own: s.hasher.hash(charges[i].Key), rate: rate}
	}
	if !s.open(tx, charges, mode, false) {
		s.open(tx, charges, mode, true)
	}
	defer s.unlock(tx)
	now := tx.now

	if slices.ContainsFunc(tx.cells, func(c cell) bool { return c.spilled }) {
		s.overflowed.Add(1)
	}
	mark, allowed := len(dst), true
	for i := range tx.cells {
		// Charges that share a bucket see each other.
		c, snap := &tx.cells[tx.cells[i].first], bucket.Snapshot{}
		c.after, snap = charges[i].Limit.Reserve(c.after, now, charges[i].Cost, mode.MaxWait)
		dst, allowed = append(dst, snap), allowed && snap.Allowed
	}
	if allowed && !mode.DryRun {
		s.commit(tx, charges, dst[mark:], now)
		return dst, true, nil
	}
	for i := range tx.cells {
		c, snap := &tx.cells[i], &dst[mark+i]
		if snap.Allowed { // show it uncharged
			*snap = charges[i].Limit.Peek(tx.cells[c.first].before, now, charges[i].Cost, mode.MaxWait)
		}
		switch {
		case c.first != i || c.slot == nil:
		case c.placed: // as a full bucket or, under overload, as it must begin
			s.save(c.slot, c.hash(), c.before, c.rate, charges[i].Limit, 0)
		default:
			c.slot.unlock()
		}
	}
	return dst, allowed, nil
}

// open locks the shards and slots of a take and reads its states. Under
// overload, that includes the overflow buckets. It reports false, with nothing
// locked, where it needs them and overload is not set.
func (s *Store) open(tx *transaction, charges []mete.Charge, mode mete.Mode, overload bool) bool {
	tx.shards = tx.shards[:0]
	for i := range tx.cells {
		c := &tx.cells[i]
		tx.shards = append(tx.shards, s.index(c.own))
		if overload {
			c.overflow = s.overflowHash(charges[i].Limit)
			tx.shards = append(tx.shards, s.index(c.overflow))
		}
	}
	slices.Sort(tx.shards)
	tx.shards = slices.Compact(tx.shards)
	for _, i := range tx.shards {
		s.shards[i].mu.Lock()
	}
	// Under the locks: one of the keys may have been in the overflow bucket just now.
	if !overload && s.overloaded() {
		s.unlock(tx)
		return false
	}
	placed := false
	for i := range tx.cells {
		c := &tx.cells[i]
		if sl, _ := s.find(c.own); sl != nil {
			c.slot = sl
		} else if !mode.DryRun {
			if !s.placeCell(c, s.instant(), overload) {
				s.abandon(tx)
				return false
			}
			placed = true
		}
		if c.slot != nil {
			c.slot.lock()
		}
	}
	tx.now = s.instant() // not before the last take from any of the slots
	for i := range tx.cells {
		if placed { // tables may have been rebuilt since
			tx.cells[i].slot, _ = s.find(tx.cells[i].hash())
		}
		s.read(tx, i, overload)
	}
	return true
}

// overloaded reports whether an overflow bucket may not be full.
func (s *Store) overloaded() bool {
	until := s.overload.Load()
	return until != 0 && int64(s.instant()) < until
}

// placeCell makes a slot for a key that has none, locked and full, or resorts to
// the overflow bucket. It reports false where it would have to, and overload is
// not set.
func (s *Store) placeCell(c *cell, now bucket.Instant, overload bool) bool {
	c.slot, c.placed = s.room(s.shard(c.own), c.own, now, false), true
	if c.slot == nil {
		c.placed = false
		if !overload {
			return false
		}
		c.spilled = true
		if c.slot, _ = s.find(c.overflow); c.slot != nil {
			return true
		}
		// There are no more of these than limits: they may exceed the bound.
		c.slot, c.placed = s.room(s.shard(c.overflow), c.overflow, now, true), true
	}
	full := bucket.State{AsOf: s.shard(c.hash()).forgot}
	s.save(c.slot, c.hash(), full, c.rate, bucket.Limit{}, locked)
	return true
}

// read fills in the state of cell i.
func (s *Store) read(tx *transaction, i int, overload bool) {
	c := &tx.cells[i]
	for c.first = 0; c.first < i && (c.slot == nil || tx.cells[c.first].slot != c.slot); {
		c.first++
	}
	switch {
	case c.first != i:
		return
	case c.slot != nil && !c.placed:
		c.before = s.load(c.slot, tx.now)
	case overload && !c.spilled:
		// The key may have spent from the overflow bucket what is missing there.
		if sl, _ := s.find(c.overflow); sl != nil {
			c.before = s.load(sl, tx.now)
		}
	}
	if c.slot == nil || c.placed {
		c.before.AsOf = max(c.before.AsOf, s.shard(c.own).forgot)
		if c.spilled {
			c.before.AsOf = max(c.before.AsOf, s.shard(c.overflow).forgot)
		}
	}
	c.after = c.before
}

// commit writes the states of an admitted take, which unlocks their slots.
func (s *Store) commit(tx *transaction, charges []mete.Charge, snaps []bucket.Snapshot, now bucket.Instant) {
	for i := range tx.cells {
		c := &tx.cells[i]
		if c.first == i {
			s.save(c.slot, c.hash(), c.after, c.rate, charges[i].Limit, 0)
		}
		if c.spilled {
			full := int64(now.Add(snaps[i].FullAfter())) + 1
			for seen := s.overload.Load(); seen < full && !s.overload.CompareAndSwap(seen, full); {
				seen = s.overload.Load()
			}
		}
	}
}

// abandon undoes an open that is to be repeated.
func (s *Store) abandon(tx *transaction) {
	for i := range tx.cells {
		c := &tx.cells[i]
		if c.slot == nil {
			continue
		}
		if sl, _ := s.find(c.own); sl != nil { // c.slot may be of an older table
			sl.unlock()
		}
		*c = cell{own: c.own, rate: c.rate}
	}
	s.unlock(tx)
}

// unlock releases the shards.
func (s *Store) unlock(tx *transaction) {
	for _, i := range tx.shards {
		s.shards[i].mu.Unlock()
	}
}

func (s *Store) shard(h hash) *shard { return &s.shards[s.index(h)] }

func (s *Store) find(h hash) (*slot, uint64) { return s.tables[s.index(h)].Load().find(h) }

// overflowHash stands for the overflow bucket of a limit. The policy's keys
// never begin with a NUL.
func (s *Store) overflowHash(l bucket.Limit) hash {
	n, p := l.Refill()
	return s.hasher.hash(fmt.Sprintf("\x00overflow %d %d %d %d", l.Capacity(), l.MaxReserved(), n, p))
}

// Refund implements [mete.Store]. A bucket that is absent is full already.
func (s *Store) Refund(_ context.Context, charges []mete.Charge) error {
	for i := range charges {
		if charges[i].Cost == 0 {
			continue
		}
		rate, err := s.rateOf(charges[i].Limit)
		if err != nil {
			return &mete.StoreError{Op: "refund", Store: "memstore", Spent: mete.NotSpent, Err: err}
		}
		s.change(charges[i].Key, func(sl *slot, h hash) {
			now := s.instant()
			before := s.load(sl, now)
			if before.Spent == 0 {
				sl.unlock()
				return
			}
			s.save(sl, h, charges[i].Limit.Refund(before, now, charges[i].Cost), rate, charges[i].Limit, 0)
		})
	}
	return nil
}

// Reset implements [mete.Store].
func (s *Store) Reset(_ context.Context, keys []string) error {
	for _, key := range keys {
		s.change(key, func(sl *slot, h hash) { s.save(sl, h, bucket.State{}, 0, bucket.Limit{}, 0) })
	}
	return nil
}

// change calls f with the locked slot of key, if it has one. f unlocks it by
// saving it.
func (s *Store) change(key string, f func(*slot, hash)) {
	h := s.hasher.hash(key)
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sl, _ := sh.table.Load().find(h); sl != nil {
		sl.lock()
		f(sl, h)
	}
}
