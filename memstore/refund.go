// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// Refund implements [mete.Store]. A bucket that is absent is full already.
func (s *Store) Refund(_ context.Context, charges []mete.Charge) error {
	for i := range charges {
		c := &charges[i]
		if c.Cost == 0 {
			continue
		}
		shape, err := s.shapeOf(&c.Limit)
		if err != nil {
			return &mete.StoreError{Op: "refund", Store: "memstore", Spent: mete.NotSpent, Err: err}
		}
		s.change(c.Key, func(sh *shard, sl *slot, h hash) {
			now := s.instant()
			state := s.load(sh, sl, now)
			if state.Spent == 0 {
				sl.unlock()
				return
			}
			c.Limit.RefundOn(&state, now, c.Cost)
			s.save(sl, h, state, shape, 0)
		})
	}
	return nil
}

// Reset implements [mete.Store].
func (s *Store) Reset(_ context.Context, keys []string) error {
	for _, key := range keys {
		s.change(key, func(_ *shard, sl *slot, h hash) { s.save(sl, h, bucket.State{}, 0, 0) })
	}
	return nil
}

// change calls f with the locked slot of key, if it has one. f unlocks it by
// saving it.
func (s *Store) change(key string, f func(*shard, *slot, hash)) {
	h := s.hasher.hash(key)
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sl, _ := sh.table.Load().find(h); sl != nil {
		sl.lock()
		f(sh, sl, h)
	}
}
