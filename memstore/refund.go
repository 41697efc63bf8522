// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// Refund implements [mete.Store]. A bucket that is absent is full already.
func (s *Store) Refund(_ context.Context, refunds []mete.Refund, id string) error {
	if id == "" {
		s.refund(refunds)
		return nil
	}
	name := s.nameOf("refund", id, len(refunds), func(i int) string { return refunds[i].Key })
	stripe := s.ids.lock(name)
	defer stripe.mu.Unlock()
	now := s.instant()
	if stripe.recall(name, now) == nil {
		s.refund(refunds)
		stripe.remember(&decided{name, now.Add(store.RetryHorizon), nil}, now)
	}
	return nil
}

func (s *Store) refund(refunds []mete.Refund) {
	tx := s.begin(len(refunds))
	defer s.end(tx)
	for i := range refunds {
		r := &refunds[i]
		tx.cells[i] = cell{key: r.Key, own: s.hasher.hash(r.Key), family: store.Family(r.Key), limit: r.Limit}
	}
	s.openKnown(tx)
	for i := range tx.cells {
		c, r := &tx.cells[i], &refunds[i]
		if c.slot == nil {
			continue
		}
		c.slot.lock() // again, if the same key came before
		row := s.load(&c.accounts, c.slot, c.key, &c.limit, tx.now)
		if r.Taken == (bucket.Taken{}) {
			row = row.Refund(tx.now, r.Cost)
		} else {
			row = row.Cancel(&c.limit, tx.now, r.Cost, r.Taken)
		}
		s.keepRow(c, row)
	}
}

// Reset implements [mete.Store].
func (s *Store) Reset(_ context.Context, keys []string) error {
	tx := s.begin(len(keys))
	defer s.end(tx)
	for i, key := range keys {
		tx.cells[i] = cell{own: s.hasher.hash(key)}
	}
	s.openKnown(tx)
	for i := range tx.cells {
		if c := &tx.cells[i]; c.slot != nil {
			c.slot.lock()
			s.save(c.slot, c.own, "", &bucket.Limit{}, &bucket.State{}, 0)
		}
	}
	return nil
}

// openKnown locks the shards of all cells and those of their slots that are there,
// and reads the clock: what follows is one step.
func (s *Store) openKnown(tx *transaction) {
	s.lock(tx, false)
	for i := range tx.cells {
		c := &tx.cells[i]
		if c.slot, _ = s.find(c.own); c.slot != nil {
			c.slot.lock()
		}
	}
	tx.now = s.instant()
}
