// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"
	"sync/atomic"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// Take implements [mete.Store]. It neither blocks nor looks at ctx. It fails
// only where the store has seen [MaxRates] different rates.
func (s *Store) Take(_ context.Context, dst []bucket.Snapshot, charges []mete.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	now := s.instant()
	if len(charges) == 1 {
		c, mark := &charges[0], len(dst)
		h := s.hasher.hash(c.Key)
		dst = append(dst, bucket.Snapshot{})
		if snap := &dst[mark]; s.takeOne(snap, h, c, mode, now) || s.takeNew(snap, h, c, mode, now) {
			return dst, snap.Allowed, nil
		}
		dst = dst[:mark]
	}
	return s.takeLocked(dst, charges, mode, now)
}

// takeOne decides about one bucket without a lock, or says that it cannot: the
// bucket is absent, locked, of another rate, or not in virtual form.
func (s *Store) takeOne(snap *bucket.Snapshot, h hash, c *mete.Charge, mode mete.Mode, now bucket.Instant) bool {
	n, p := c.Limit.Refill()
	for {
		sl, word := s.find(h)
		if sl == nil || word&(locked|virtual) != virtual {
			return false
		}
		at := atomic.LoadUint64(&sl.at)
		if at&plainAt != 0 || !s.hasRate(atomic.LoadUint64(&sl.rate), n, p) {
			return false
		}
		state := s.decode(word, at, n, p)
		if mode.DryRun {
			*snap = c.Limit.Peek(state, now, c.Cost, mode.MaxWait)
		} else if c.Limit.Spend(&state, snap, now, c.Cost, mode.MaxWait) {
			next, asOf := s.encode(state, n)
			if next&virtual == 0 {
				return false
			}
			// The process's own clock does not step back, so it can do without.
			if s.now != nil && asOf != at && !atomic.CompareAndSwapUint64(&sl.at, at, asOf) {
				continue
			}
			if atomic.CompareAndSwapUint64(&sl.word, word, word&generationMask|next) {
				return true
			}
			continue
		}
		// Nothing to write: the answer holds if the word is as it was, for then
		// all that was read belonged together.
		if atomic.LoadUint64(&sl.word) == word {
			return true
		}
	}
}

// takeNew decides about one bucket that is absent, and so full, or says that it
// cannot: the bucket is there after all, or the store is full.
func (s *Store) takeNew(snap *bucket.Snapshot, h hash, c *mete.Charge, mode mete.Mode, now bucket.Instant) bool {
	rate, err := s.rateOf(c.Limit)
	if err != nil || int64(now) < s.overload.Load() {
		return false
	}
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sl, _ := sh.table.Load().find(h); sl != nil {
		return false
	}
	if mode.DryRun {
		*snap = c.Limit.Peek(bucket.State{}, now, c.Cost, mode.MaxWait)
		return true
	}
	var state bucket.State
	if !c.Limit.Spend(&state, snap, now, c.Cost, mode.MaxWait) {
		return true
	}
	sl := s.room(sh, h, now, false)
	if sl == nil {
		return false
	}
	s.save(sl, h, state, rate, c.Limit, 0)
	return true
}
