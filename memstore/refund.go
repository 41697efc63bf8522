// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// Refund implements [mete.Store]. It skips absent buckets because they are full.
func (s *Store) Refund(_ context.Context, refunds []mete.Refund, id string) error {
	if id == "" {
		s.refund(refunds)
		return nil
	}
	name := s.hashID("refund", id, len(refunds), func(i int) string { return refunds[i].Key })
	stripe := s.ids.lock(name)
	defer stripe.mu.Unlock()
	now := s.instant()
	if stripe.lookup(name, now) == nil {
		s.refund(refunds)
		stripe.record(&idRecord{name, now.Add(store.RetryHorizon), nil}, now)
	}
	return nil
}

func (s *Store) refund(refunds []mete.Refund) {
	if slices.ContainsFunc(refunds, func(r mete.Refund) bool { return isSlot(&r.Charge) }) {
		if refunds = s.releaseSlots(refunds); len(refunds) == 0 {
			return
		}
	}
	tx := s.newTransaction(len(refunds))
	defer s.finish(tx)
	for i := range refunds {
		r := &refunds[i]
		tx.cells[i] = cell{key: r.Key, own: s.hasher.hash(r.Key), family: store.Family(r.Key), limit: r.Limit}
	}
	s.openExisting(tx)
	for i := range tx.cells {
		c, r := &tx.cells[i], &refunds[i]
		if c.slot == nil {
			continue
		}
		c.slot.lock() // the same key may have unlocked it
		s.loadCell(c, tx.now)
		if r.Taken == (bucket.Taken{}) {
			s.writeRow(c, c.row.Refund(tx.now, r.Cost))
			continue
		}
		for i := range c.row { // as Row.Cancel, in place: the row is a copy
			if a := &c.row[i]; a.Limit == c.limit {
				a.State = c.limit.Cancel(a.State, tx.now, r.Cost, r.Taken)
				break
			}
		}
		s.writeRow(c, c.row)
	}
}

func (s *Store) Reset(_ context.Context, keys []string) error {
	if s.slots.used.Load() > 0 {
		s.resetSlots(keys)
	}
	tx := s.newTransaction(len(keys))
	defer s.finish(tx)
	for i, key := range keys {
		tx.cells[i] = cell{own: s.hasher.hash(key)}
	}
	s.openExisting(tx)
	for i := range tx.cells {
		s.dropPenalty(s.shard(tx.cells[i].own), tx.cells[i].own)
		if c := &tx.cells[i]; c.slot != nil {
			c.slot.lock()
			s.reset(c.slot, c.own)
		}
	}
	return nil
}

// reset fills the bucket of a locked slot, and unlocks it. Holds do not return the tokens again.
func (s *Store) reset(sl *slot, h hash) {
	if atomic.LoadUint64(&sl.word)&hasSideRow != 0 {
		s.holds.dropRefunds(h)
	}
	s.save(sl, h, "", &bucket.Limit{}, &bucket.State{}, 0)
}

// openExisting locks the shards of all cells and the existing slots, and reads the clock.
func (s *Store) openExisting(tx *transaction) {
	s.lock(tx, false)
	for i := range tx.cells {
		c := &tx.cells[i]
		if c.slot, _ = s.find(c.own); c.slot != nil {
			c.slot.lock()
		}
	}
	tx.now = s.instant()
}
