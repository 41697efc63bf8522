// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// A cell is one charge's bucket in a take under locks.
type cell struct {
	own      hash         // of the charge's key
	overflow hash         // of the overflow bucket of the charge's limit
	shape    uint64       // the number of its limit's
	limit    bucket.Limit // the charge's; of an overflow bucket, as it holds for all keys
	cost     bucket.Tokens
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
	tx, err := s.begin(charges)
	defer tx.release()
	if err != nil {
		return dst, false, &mete.StoreError{Op: "take", Store: "memstore", Spent: mete.NotSpent, Err: err}
	}
	if !s.open(tx, mode, false) {
		s.open(tx, mode, true)
	}
	defer s.unlock(tx)

	spilled := slices.ContainsFunc(tx.cells, func(c cell) bool { return c.spilled })
	if spilled {
		s.overflowed.Add(1)
	}
	if mode.UpTo {
		tx.lower()
	}
	mark := len(dst)
	dst, allowed := tx.consider(dst, mode.MaxWait, spilled)
	if allowed && !mode.DryRun {
		s.commit(tx, dst[mark:], mode.MaxWait)
	} else {
		s.giveUp(tx)
	}
	return dst, allowed, nil
}

// begin returns a transaction for the charges.
func (s *Store) begin(charges []mete.Charge) (*transaction, error) {
	tx := transactions.Get().(*transaction)
	tx.cells = slices.Grow(tx.cells[:0], len(charges))[:len(charges)]
	for i := range charges {
		c := &charges[i]
		shape, err := s.shapeOf(&c.Limit)
		if err != nil {
			return tx, err
		}
		tx.cells[i] = cell{own: s.hasher.hash(c.Key), shape: shape, limit: c.Limit, cost: c.Cost}
	}
	return tx, nil
}

// lower makes the costs what there is.
func (tx *transaction) lower() {
	there := bucket.MaxTokens
	for i := range tx.cells {
		c := &tx.cells[i]
		there = min(there, c.limit.Peek(tx.cells[c.first].before, tx.now, 0, 0).Remaining())
	}
	for i := range tx.cells {
		tx.cells[i].cost = bucket.UpTo(tx.cells[i].cost, there)
	}
}

// consider appends a snapshot of every cell, uncharged, and reports whether all
// are allowed. Where charges share an overflow bucket they see each other.
func (tx *transaction) consider(dst []bucket.Snapshot, maxWait time.Duration, spilled bool) ([]bucket.Snapshot, bool) {
	mark, allowed := len(dst), true
	for i := range tx.cells {
		c := &tx.cells[i]
		snap := c.limit.Peek(tx.cells[c.first].before, tx.now, c.cost, maxWait)
		dst, allowed = append(dst, snap), allowed && snap.Allowed
	}
	if !spilled || !allowed {
		return dst, allowed
	}
	for i := range tx.cells {
		c, v := &tx.cells[i], bucket.Verdict{}
		first := &tx.cells[c.first]
		if first.after, v = c.limit.Spend(first.after, tx.now, c.cost, maxWait); !v.Allowed() {
			v.Show(&dst[mark+i], &c.limit, c.cost)
			allowed = false
		}
	}
	for i := range tx.cells { // for commit to spend again
		tx.cells[i].after = tx.cells[i].before
	}
	return dst, allowed
}

// commit spends what consider has found to be there, and shows it. That unlocks
// the slots.
func (s *Store) commit(tx *transaction, snaps []bucket.Snapshot, maxWait time.Duration) {
	for i := range tx.cells {
		c := &tx.cells[i]
		first := &tx.cells[c.first]
		v := c.limit.SpendOn(&first.after, tx.now, c.cost, maxWait)
		v.Show(&snaps[i], &c.limit, c.cost)
	}
	for i := range tx.cells {
		c := &tx.cells[i]
		if c.first == i {
			s.save(c.slot, c.hash(), c.after, c.shape, 0)
		}
		if c.spilled {
			full := int64(tx.now.Add(snaps[i].FullAfter())) + 1
			for seen := s.overload.Load(); seen < full && !s.overload.CompareAndSwap(seen, full); {
				seen = s.overload.Load()
			}
		}
	}
}

// giveUp unlocks the slots of a take that spends nothing.
func (s *Store) giveUp(tx *transaction) {
	for i := range tx.cells {
		switch c := &tx.cells[i]; {
		case c.first != i || c.slot == nil:
		case c.placed: // as a full bucket or, under overload, as it must begin
			s.save(c.slot, c.hash(), c.before, c.shape, 0)
		default:
			c.slot.unlock()
		}
	}
}

// release returns tx to its pool, without what it points to.
func (tx *transaction) release() {
	clear(tx.cells)
	transactions.Put(tx)
}

// open locks the shards and slots of a take and reads its states. Under
// overload, that includes the overflow buckets. It reports false, with nothing
// locked, where it needs them and overload is not set.
func (s *Store) open(tx *transaction, mode mete.Mode, overload bool) bool {
	tx.shards = tx.shards[:0]
	for i := range tx.cells {
		c := &tx.cells[i]
		tx.shards = append(tx.shards, s.index(c.own))
		if overload {
			c.overflow = s.overflowHash(c.limit)
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
		c.spilled, c.limit = true, c.limit.For("")
		if c.slot, _ = s.find(c.overflow); c.slot != nil {
			return true
		}
		// There are no more of these than limits: they may exceed the bound.
		c.slot, c.placed = s.room(s.shard(c.overflow), c.overflow, now, true), true
	}
	full := bucket.State{AsOf: s.shard(c.hash()).forgot}
	s.save(c.slot, c.hash(), full, c.shape, locked)
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
		c.before = s.load(s.shard(c.hash()), c.slot, tx.now)
	case overload && !c.spilled:
		// The key may have spent from the overflow bucket what is missing there.
		if sl, _ := s.find(c.overflow); sl != nil {
			c.before = s.load(s.shard(c.overflow), sl, tx.now)
			if c.before.Log != nil {
				c.before.Log = bucket.NewLog(slices.Clone(c.before.Log.Entries()))
			}
		}
	}
	if c.slot == nil || c.placed {
		forgot := s.shard(c.own).forgot
		if overload {
			forgot = max(forgot, s.shard(c.overflow).forgot)
		}
		// What an overflow bucket misses has been coming back until then.
		if c.before.Spent != 0 {
			c.before, _ = c.limit.Spend(c.before, forgot, 0, bucket.Forced)
		}
		if c.before.Spent == 0 {
			c.before.AsOf = max(c.before.AsOf, forgot)
		}
	}
	c.after = c.before
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
		*c = cell{own: c.own, shape: c.shape, limit: c.limit, cost: c.cost}
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

// overflowHash stands for the overflow bucket of a limit. No key has it: that
// would take two texts whose hashes are each other's complement.
func (s *Store) overflowHash(l bucket.Limit) hash {
	h := s.hasher.hash(fmt.Sprintf("overflow %d", l.For("")))
	return hash{^h.h0, ^h.h1}
}
