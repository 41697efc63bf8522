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

// A cell is one charge's bucket in a take under locks.
type cell struct {
	key      string
	own      hash         // of the charge's key
	overflow hash         // of the overflow bucket of the charge's limit and family
	family   string       // of the charge's key
	limit    bucket.Limit // the charge's; of an overflow bucket, as it holds for all keys
	cost     bucket.Tokens
	spilled  bool // the bucket is the overflow bucket

	slot   *slot // nil: an absent bucket of a dry run, or no place at all
	placed bool  // the slot is new
	first  int   // the first cell with this slot: itself, unless charges share a bucket

	row           bucket.Row // in accounts; empty where the bucket is absent or placed
	accounts      [bucket.MaxAccounts]bucket.Account
	fresh         bool // the row has to gain an account for the limit, also where the take is denied
	before, after bucket.State
}

// place returns the hash and the key of the cell's bucket.
func (c *cell) place() (hash, string) {
	if c.spilled {
		return c.overflow, ""
	}
	return c.own, c.key
}

func (c *cell) hash() hash {
	h, _ := c.place()
	return h
}

// A transaction is work on buckets under locks. They are pooled.
type transaction struct {
	cells  []cell
	shards []int          // to lock, in ascending order
	now    bucket.Instant // read once all slots are locked
}

var transactions = sync.Pool{New: func() any { return new(transaction) }}

// takeLocked decides about any number of buckets under the locks of their
// shards.
func (s *Store) takeLocked(dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool) {
	tx := s.beginTake(charges)
	if !s.open(tx, mode, false) {
		s.open(tx, mode, true)
	}
	defer s.end(tx)

	spilled := false
	for i := range tx.cells {
		spilled = spilled || tx.cells[i].spilled
	}
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
		s.giveUp(tx, mode.DryRun)
	}
	return dst, allowed
}

// beginTake returns a transaction for the charges.
func (s *Store) beginTake(charges []store.Charge) *transaction {
	tx := s.begin(len(charges))
	for i := range charges {
		from, c := &charges[i], &tx.cells[i]
		c.key, c.own, c.limit, c.cost = from.Key, s.hasher.hash(from.Key), from.Limit, from.Cost
		c.family = store.Family(from.Key)
	}
	return tx
}

// begin returns a transaction of n cells, which are zero.
func (s *Store) begin(n int) *transaction {
	tx := transactions.Get().(*transaction)
	tx.cells = slices.Grow(tx.cells[:0], n)[:n]
	return tx
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
			v.Show(&dst[mark+i], &c.limit, c.cost, tx.now)
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
		v.Show(&snaps[i], &c.limit, c.cost, tx.now)
	}
	for i := range tx.cells {
		c := &tx.cells[i]
		if c.first == i && c.slot != nil {
			s.keep(c, &c.after, tx.now, c.cost)
		}
		if c.spilled {
			full := int64(tx.now.Add(snaps[i].FullAfter())) + 1
			for seen := s.overload.Load(); seen < full && !s.overload.CompareAndSwap(seen, full); {
				seen = s.overload.Load()
			}
		}
	}
}

// keep writes the cell's row after a decision about cost, as [bucket.Row.Write]
// makes it. That unlocks the slot.
func (s *Store) keep(c *cell, state *bucket.State, now bucket.Instant, cost bucket.Tokens) {
	if len(c.row) == 0 || len(c.row) == 1 && c.row[0].Limit == c.limit {
		s.save(c.slot, c.hash(), c.family, &c.limit, state, 0)
		return
	}
	s.keepRow(c, c.row.Write(&c.limit, *state, now, cost))
}

func (s *Store) keepRow(c *cell, row bucket.Row) {
	if len(row) == 1 {
		s.save(c.slot, c.hash(), c.family, &row[0].Limit, &row[0].State, 0)
	} else {
		s.saveRow(c.slot, c.hash(), c.family, row, 0)
	}
}

// giveUp unlocks the slots of a take that spends nothing.
func (s *Store) giveUp(tx *transaction, dryRun bool) {
	for i := range tx.cells {
		switch c := &tx.cells[i]; {
		case c.first != i || c.slot == nil:
		case c.placed && c.before.Spent == 0:
			s.save(c.slot, c.hash(), "", &bucket.Limit{}, &bucket.State{AsOf: c.before.AsOf}, 0)
		case c.placed: // under overload, as it must begin
			s.save(c.slot, c.hash(), c.family, &c.limit, &c.before, 0)
		case c.fresh && !dryRun: // else the next take would begin anew
			s.keep(c, &c.before, tx.now, 0)
		default:
			c.slot.unlock()
		}
	}
}

// end unlocks the shards and returns tx to its pool, without what it points to.
func (s *Store) end(tx *transaction) {
	s.unlock(tx)
	clear(tx.cells)
	transactions.Put(tx)
	s.reclaim()
}

// open locks the shards and slots of a take and reads its states. Under
// overload, that includes the overflow buckets. It reports false, with nothing
// locked, where it needs them and overload is not set.
func (s *Store) open(tx *transaction, mode mete.Mode, overload bool) bool {
	if overload {
		for i := range tx.cells {
			tx.cells[i].overflow = s.overflowHash(&tx.cells[i])
		}
	}
	s.lock(tx, overload)
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

// lock locks the shards of the cells' keys and, under overload, of their overflow
// buckets.
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

// placeCell makes a slot for a key that has none, locked and full, or resorts to
// the overflow bucket. It reports false where it would have to, and overload is
// not set.
func (s *Store) placeCell(c *cell, now bucket.Instant, overload bool) bool {
	c.slot, c.placed = s.room(s.shard(c.own), c.own, now, s.maxKeys), true
	if c.slot == nil {
		c.placed = false
		if !overload {
			return false
		}
		c.spilled, c.limit = true, c.limit.For("")
		if c.slot, _ = s.find(c.overflow); c.slot != nil {
			return true
		}
		c.slot, c.placed = s.room(s.shard(c.overflow), c.overflow, now, s.maxKeys+mostOverflow), true
		if c.slot == nil {
			c.placed = false
			return true // see read
		}
	}
	full := bucket.State{AsOf: s.shard(c.hash()).forgot}
	s.save(c.slot, c.hash(), "", &bucket.Limit{}, &full, locked)
	return true
}

// read fills in the row and the state of cell i.
func (s *Store) read(tx *transaction, i int, overload bool) {
	c := &tx.cells[i]
	for c.first = 0; c.first < i && (c.slot == nil || tx.cells[c.first].slot != c.slot); {
		c.first++
	}
	if c.first != i {
		return
	}
	if c.spilled && c.slot == nil {
		// There are too many overflow buckets: this one gives nothing.
		all := c.limit.Capacity() + c.limit.MaxReserved()
		c.before, _ = c.limit.Spend(bucket.State{}, tx.now, all, bucket.Forced)
		c.after = c.before
		return
	}
	known := c.slot != nil && !c.placed
	if known {
		_, key := c.place()
		c.row = s.load(&c.accounts, c.slot, key, &c.limit, tx.now)
		c.before, c.fresh = c.row.Open(&c.limit, tx.now)
	} else {
		c.before.AsOf = s.shard(c.hash()).forgot
	}
	if overload && !c.spilled && !slices.ContainsFunc(c.row, func(a bucket.Account) bool { return a.Limit == c.limit }) {
		s.readOverflow(c, tx.now, known)
	}
	c.after = c.before
}

// readOverflow makes the state of a bucket without an account of its limit that of
// the overflow bucket, where that misses more: the key may have spent it there.
func (s *Store) readOverflow(c *cell, now bucket.Instant, known bool) {
	shared := bucket.State{AsOf: s.shard(c.overflow).forgot}
	if sl, _ := s.find(c.overflow); sl != nil {
		var accounts [bucket.MaxAccounts]bucket.Account
		shared = s.load(&accounts, sl, "", &c.limit, now)[0].State
	}
	// It has been refilled until the instant of the key's own bucket.
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
		*c = cell{key: c.key, own: c.own, family: c.family, limit: c.limit, cost: c.cost}
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

// overflowHash stands for the overflow bucket of a limit and a family of keys. No key has it:
// that would take two texts whose hashes are each other's complement.
func (s *Store) overflowHash(c *cell) hash {
	h := s.hasher.hash(fmt.Sprintf("overflow %d %s", c.limit.For(""), c.family))
	return hash{^h.h0, ^h.h1}
}
