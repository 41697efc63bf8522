// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A cell is the bucket of one charge in a take under locks.
type cell struct {
	key      string
	own      hash         // of the charge's key
	overflow hash         // of the overflow bucket of the charge's limit and family.
	family   string       // of the charge's key
	limit    bucket.Limit // of the charge; for an overflow bucket, without the start of a key.
	cost     bucket.Tokens
	onFull   store.OnFull
	await    time.Duration // of the charge
	spill    bucket.Spill  // if there is no space for the key

	slot   *slot // nil for an absent bucket of a dry run, or if there is no space.
	placed bool  // the slot is new
	first  int   // index of the first cell with this slot

	row           bucket.Row // in accounts; empty if the bucket is absent or placed
	accounts      [bucket.MaxAccounts]bucket.Account
	fresh         bool // the row needs a new account for the limit, even after a denial
	before, after bucket.State
}

func (c *cell) bucketKey() (hash, string) {
	if c.spilled() {
		return c.overflow, ""
	}
	return c.own, c.key
}

// spilled reports whether c uses the overflow bucket.
func (c *cell) spilled() bool { return c.spill == bucket.SpillShared }

func (c *cell) hash() hash {
	h, _ := c.bucketKey()
	return h
}

// A transaction is an operation on buckets under locks. Transactions are pooled.
type transaction struct {
	cells  []cell
	shards []int          // to lock, in ascending order
	now    bucket.Instant // read once all slots are locked
	held   *held          // the hold that the take becomes, or nil
}

var transactions = sync.Pool{New: func() any { return new(transaction) }}

func (s *Store) takeLocked(dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool) {
	return s.takeBeside(dst, charges, mode, true)
}

// takeBeside is takeLocked for the buckets of a take with slots. The take is denied unless slots is true.
func (s *Store) takeBeside(dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode, slots bool) ([]bucket.Snapshot, bool) {
	tx := s.beginTake(charges)
	if !s.open(tx, mode, false) {
		s.open(tx, mode, true)
	}
	defer s.finish(tx)

	spill := tx.spills()
	s.countSpills(spill, mode.DryRun)
	if mode.UpTo {
		tx.lowerCosts()
	}
	mark := len(dst)
	dst, allowed := tx.decide(dst, mode.MaxWait, spill)
	if hasPenalty(charges) && !s.applyPenalties(tx, charges, dst[mark:], mode) {
		allowed = false
	}
	if allowed = allowed && slots; allowed && !mode.DryRun {
		s.commit(tx, dst[mark:], mode.MaxWait)
	} else {
		s.rollBack(tx, mode.DryRun)
	}
	return dst, allowed
}

func (s *Store) beginTake(charges []store.Charge) *transaction {
	tx := s.newTransaction(len(charges))
	for i := range charges {
		from, c := &charges[i], &tx.cells[i]
		c.onFull, c.await = from.OnFull, from.Await
		c.key, c.own, c.limit, c.cost = from.Key, s.hasher.hash(from.Key), from.Limit, from.Cost
		c.family = store.Family(from.Key)
	}
	return tx
}

func (s *Store) newTransaction(n int) *transaction {
	tx := transactions.Get().(*transaction)
	tx.cells = slices.Grow(tx.cells[:0], n)[:n]
	return tx
}

func (tx *transaction) lowerCosts() {
	there := bucket.MaxTokens
	for i := range tx.cells {
		c := &tx.cells[i]
		there = min(there, c.limit.Peek(tx.cells[c.first].before, tx.now, 0, 0).Remaining())
	}
	for i := range tx.cells {
		tx.cells[i].cost = bucket.UpTo(tx.cells[i].cost, there)
	}
}

// decide appends an uncharged snapshot of every cell, and reports whether all are allowed. Charges with the
// same overflow bucket see each other's costs.
func (tx *transaction) decide(dst []bucket.Snapshot, maxWait time.Duration, spill spills) ([]bucket.Snapshot, bool) {
	mark, allowed := len(dst), true
	for i := range tx.cells {
		c := &tx.cells[i]
		snap := c.limit.Peek(tx.cells[c.first].before, tx.now, c.cost, maxWait)
		c.showSpill(&snap)
		dst, allowed = append(dst, snap), allowed && snap.Allowed
	}
	if !spill[bucket.SpillShared] || !allowed {
		return dst, allowed
	}
	for i := range tx.cells {
		c, v := &tx.cells[i], bucket.Verdict{}
		first := &tx.cells[c.first]
		if first.after, v = c.limit.Spend(first.after, tx.now, c.cost, maxWait); !v.Allowed() {
			v.Show(&dst[mark+i], &c.limit, c.cost, tx.now)
			c.showSpill(&dst[mark+i])
			allowed = false
		}
	}
	for i := range tx.cells { // commit spends again
		tx.cells[i].after = tx.cells[i].before
	}
	return dst, allowed
}

// commit spends the costs that decide allowed, updates the snapshots, and unlocks the slots.
func (s *Store) commit(tx *transaction, snaps []bucket.Snapshot, maxWait time.Duration) {
	for i := range tx.cells {
		c := &tx.cells[i]
		first := &tx.cells[c.first]
		v := c.limit.SpendOn(&first.after, tx.now, c.cost, maxWait)
		v.Show(&snaps[i], &c.limit, c.cost, tx.now)
		c.showSpill(&snaps[i])
		first.after = s.remember(tx, i, first.after, snaps[i].Taken())
	}
	for i := range tx.cells {
		c := &tx.cells[i]
		if c.first == i && c.slot != nil {
			s.writeCell(c, &c.after, tx.now, c.cost)
		}
		if c.spilled() {
			full := int64(tx.now.Add(snaps[i].FullAfter())) + 1
			for seen := s.overload.Load(); seen < full && !s.overload.CompareAndSwap(seen, full); {
				seen = s.overload.Load()
			}
		}
	}
}

// writeCell writes the cell's row after a decision about cost: see [bucket.Row.WithState]. It unlocks the slot.
func (s *Store) writeCell(c *cell, state *bucket.State, now bucket.Instant, cost bucket.Tokens) {
	if len(c.row) == 0 || len(c.row) == 1 && c.row[0].Limit == c.limit {
		s.save(c.slot, c.hash(), c.family, &c.limit, state, 0)
		return
	}
	s.writeRow(c, c.row.WithState(&c.limit, *state, now, cost))
}

func (s *Store) writeRow(c *cell, row bucket.Row) {
	if len(row) == 1 {
		s.save(c.slot, c.hash(), c.family, &row[0].Limit, &row[0].State, 0)
	} else {
		s.saveRow(c.slot, c.hash(), c.family, row, 0)
	}
}

func (s *Store) rollBack(tx *transaction, dryRun bool) {
	for i := range tx.cells {
		switch c := &tx.cells[i]; {
		case c.first != i || c.slot == nil:
		case c.placed && c.before.Spent == 0:
			s.save(c.slot, c.hash(), "", &bucket.Limit{}, &bucket.State{AsOf: c.before.AsOf}, 0)
		case c.placed: // starts with the overflow bucket's missing amount
			s.save(c.slot, c.hash(), c.family, &c.limit, &c.before, 0)
		case c.fresh && !dryRun: // otherwise the next take would start from a new account again
			s.writeCell(c, &c.before, tx.now, 0)
		default:
			c.slot.unlock()
		}
	}
}

func (s *Store) finish(tx *transaction) {
	s.unlock(tx)
	clear(tx.cells)
	tx.held = nil
	transactions.Put(tx)
	s.reclaim()
}

// open locks the shards and slots of a take and reads its states, including overflow buckets if overload is
// set. If it needs overflow buckets and overload is not set, it returns false and holds no locks.
func (s *Store) open(tx *transaction, mode mete.Mode, overload bool) bool {
	if overload {
		for i := range tx.cells {
			tx.cells[i].overflow = s.overflowHash(&tx.cells[i])
		}
	}
	s.lock(tx, overload)
	// Check under the locks: one of the keys may just have used the overflow bucket.
	if !overload && s.overloaded() {
		s.unlock(tx)
		return false
	}
	placed := false
	for i := range tx.cells {
		c := &tx.cells[i]
		if sl, _ := s.find(c.own); sl != nil {
			c.slot = sl
		} else if !mode.DryRun || c.onFull != store.OnFullShare && s.used.Load() >= s.maxKeys {
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
	tx.now = s.instant() // read after the last take from any of the slots
	for i := range tx.cells {
		if placed { // tables may have been rebuilt since then
			tx.cells[i].slot, _ = s.find(tx.cells[i].hash())
		}
		s.readCell(tx, i, overload)
	}
	return true
}

func (s *Store) lock(tx *transaction, overload bool) {
	tx.shards = tx.shards[:0]
	for i := range tx.cells {
		c := &tx.cells[i]
		tx.shards = append(tx.shards, s.index(c.own))
		if overload {
			tx.shards = append(tx.shards, s.index(c.overflow))
		}
	}
	slices.Sort(tx.shards)
	tx.shards = slices.Compact(tx.shards)
	for _, i := range tx.shards {
		s.shards[i].mu.Lock()
	}
}

// overloaded reports whether an overflow bucket may not be full.
func (s *Store) overloaded() bool {
	until := s.overload.Load()
	return until != 0 && int64(s.instant()) < until
}

// placeCell creates a locked and full slot for a new key. Without space, c.onFull decides. If the cell needs the overflow
// bucket and overload is not set, placeCell returns false.
func (s *Store) placeCell(c *cell, now bucket.Instant, overload bool) bool {
	c.slot, c.placed = s.allocate(s.shard(c.own), c.own, now, s.maxKeys), true
	if c.slot == nil {
		c.placed = false
		if c.onFull != store.OnFullShare {
			c.spill = spillOf(c.onFull)
			return true
		}
		if !overload {
			return false
		}
		c.spill, c.limit = bucket.SpillShared, c.limit.ForKey("")
		if c.slot, _ = s.find(c.overflow); c.slot != nil {
			return true
		}
		c.slot, c.placed = s.allocate(s.shard(c.overflow), c.overflow, now, s.maxKeys+maxOverflow), true
		if c.slot == nil {
			c.placed = false
			return true // see readCell
		}
	}
	full := bucket.State{AsOf: s.shard(c.hash()).evictedAt}
	s.save(c.slot, c.hash(), "", &bucket.Limit{}, &full, locked)
	return true
}

func (s *Store) readCell(tx *transaction, i int, overload bool) {
	c := &tx.cells[i]
	for c.first = 0; c.first < i && (c.slot == nil || tx.cells[c.first].slot != c.slot); {
		c.first++
	}
	if c.first != i {
		return
	}
	if c.spill == bucket.SpillClosed || c.spilled() && c.slot == nil {
		// There is no space for the bucket, or for another overflow bucket: deny.
		all := c.limit.Capacity() + c.limit.MaxReserved()
		c.before, _ = c.limit.Spend(bucket.State{}, tx.now, all, bucket.Forced)
		c.after = c.before
		return
	}
	known := c.slot != nil && !c.placed
	if known {
		s.loadCell(c, tx.now)
		c.before, c.fresh = c.row.StateFor(&c.limit, tx.now)
	} else {
		c.before.AsOf = s.shard(c.hash()).evictedAt
	}
	if overload && c.spill == bucket.SpillNone && !slices.ContainsFunc(c.row, func(a bucket.Account) bool { return a.Limit == c.limit }) {
		s.readOverflow(c, tx.now, known)
	}
	c.after = c.before
}

// readOverflow handles a bucket without an account of its limit. If the overflow bucket lacks more, its state
// replaces the bucket's state, because the key may have spent those tokens there.
func (s *Store) readOverflow(c *cell, now bucket.Instant, known bool) {
	shared := bucket.State{AsOf: s.shard(c.overflow).evictedAt}
	if sl, _ := s.find(c.overflow); sl != nil {
		var accounts [bucket.MaxAccounts]bucket.Account
		shared = s.load(&accounts, sl, "", &c.limit, now)[0].State
	}
	// The overflow bucket has refilled until the instant of the key's own bucket.
	if shared.Spent != 0 {
		shared, _ = c.limit.Spend(shared, c.before.AsOf, 0, bucket.Forced)
	}
	missing := func(s bucket.State) bucket.Tokens { return c.limit.Peek(s, now, 0, 0).Missing() }
	switch {
	case shared.Spent == 0:
		if !known {
			c.before.AsOf = max(c.before.AsOf, shared.AsOf)
		}
	case !known || missing(shared) > missing(c.before):
		c.before, c.fresh = shared, known
	}
}

// abandon undoes open, so that the caller can repeat it.
func (s *Store) abandon(tx *transaction) {
	for i := range tx.cells {
		c := &tx.cells[i]
		if c.slot == nil {
			continue
		}
		if sl, _ := s.find(c.own); sl != nil { // c.slot may belong to an older table
			sl.unlock()
		}
		*c = cell{key: c.key, own: c.own, family: c.family, limit: c.limit, cost: c.cost, onFull: c.onFull, await: c.await}
	}
	s.unlock(tx)
}

func (s *Store) unlock(tx *transaction) {
	for _, i := range tx.shards {
		s.shards[i].mu.Unlock()
	}
}

func (s *Store) shard(h hash) *shard { return &s.shards[s.index(h)] }

func (s *Store) find(h hash) (*slot, uint64) { return s.tables[s.index(h)].Load().find(h) }

// overflowHash returns the hash of the overflow bucket of a limit and a family. No key has the same hash: that
// would take two texts with complementary hashes.
func (s *Store) overflowHash(c *cell) hash {
	h := s.hasher.hash(fmt.Sprintf("overflow %d %s", c.limit.ForKey(""), c.family))
	return hash{^h.h0, ^h.h1}
}
