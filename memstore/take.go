// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// Take implements [mete.Store]. It waits for nothing but the locks of shards,
// which nobody holds for long, and does not look at ctx. It fails only where the
// store has seen [MaxRates] different rates.
func (s *Store) Take(_ context.Context, dst []bucket.Snapshot, charges []mete.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	if len(charges) == 1 && !mode.DryRun {
		now := s.instant()
		c := &charges[0]
		h := s.hasher.hash(c.Key)
		v, ok := s.takeOne(h, c, mode.MaxWait, now)
		if !ok {
			v, ok = s.takeNew(h, c, mode.MaxWait, now)
		}
		if ok {
			dst = slices.Grow(dst, 1)[:len(dst)+1]
			v.Show(&dst[len(dst)-1], &c.Limit)
			return dst, v.Allowed(), nil
		}
	}
	return s.takeLocked(dst, charges, mode)
}

// takeOne decides about one bucket without a lock, or says that it cannot: the
// bucket is absent, locked, of another rate, or not in virtual form.
func (s *Store) takeOne(h hash, c *mete.Charge, maxWait time.Duration, now bucket.Instant) (bucket.Verdict, bool) {
	n, p := c.Limit.Refill()
	for {
		sl, word := s.tables[s.index(h)].Load().find(h)
		if sl == nil || word&(locked|virtual) != virtual {
			return bucket.Verdict{}, false
		}
		at := atomic.LoadUint64(&sl.at)
		if at&plainAt != 0 || !s.hasRate(atomic.LoadUint64(&sl.tag), n, p) {
			return bucket.Verdict{}, false
		}
		state, v := c.Limit.Spend(s.decode(word, at, n, p), now, c.Cost, maxWait)
		if !v.Allowed() {
			// The denial holds if the word is as it was, for then all that was read
			// belonged together.
			if atomic.LoadUint64(&sl.word) == word {
				return v, true
			}
			continue
		}
		next, asOf := s.encode(state, n)
		// A word never counts back, but where the capacity was lowered or now is older
		// than the last take: whoever has the lock can tell.
		if next&virtual == 0 || next&payloadMask < word&payloadMask {
			return bucket.Verdict{}, false
		}
		// The process's own clock does not step back, so it can do without.
		if s.now != nil && asOf != at && !atomic.CompareAndSwapUint64(&sl.at, at, asOf) {
			continue
		}
		if atomic.CompareAndSwapUint64(&sl.word, word, word&generationMask|next) {
			return v, true
		}
	}
}

// takeNew decides about one bucket that is absent, and so full, or says that it
// cannot: the bucket is there after all, or the store is full.
func (s *Store) takeNew(h hash, c *mete.Charge, maxWait time.Duration, now bucket.Instant) (bucket.Verdict, bool) {
	rate, err := s.rateOf(c.Limit)
	if err != nil {
		return bucket.Verdict{}, false
	}
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	// Under the lock: the key may have been in the overflow bucket just now.
	if s.overloaded() {
		return bucket.Verdict{}, false
	}
	if sl, _ := sh.table.Load().find(h); sl != nil {
		return bucket.Verdict{}, false
	}
	state, v := c.Limit.Spend(bucket.State{AsOf: sh.forgot}, now, c.Cost, maxWait)
	if !v.Allowed() {
		return v, true
	}
	sl := s.room(sh, h, now, false)
	if sl == nil {
		return bucket.Verdict{}, false
	}
	// room may have forgotten buckets, but none later than now.
	s.save(sl, h, state, rate, c.Limit, 0)
	return v, true
}
