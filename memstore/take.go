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
	if mode.DryRun || mode.UpTo || mode.ID != "" {
		if mode.ID != "" && !mode.DryRun {
			return s.takeOnce(dst, charges, mode)
		}
		return s.takeLocked(dst, charges, mode)
	}
	if len(charges) > 1 {
		if dst, allowed, ok := s.takeSeveral(dst, charges, mode.MaxWait); ok {
			return dst, allowed, nil
		}
	} else if len(charges) == 1 {
		c := &charges[0]
		if v, ok := s.takeOne(c.Key, &c.Limit, c.Cost, mode.MaxWait); ok {
			dst = slices.Grow(dst, 1)[:len(dst)+1]
			v.Show(&dst[len(dst)-1], &c.Limit, c.Cost)
			return dst, v.Allowed(), nil
		}
	}
	return s.takeLocked(dst, charges, mode)
}

// TakeOne is [Store.Take] from one bucket, for programs that limit by keys and
// need neither a policy nor several limits: nothing is shorter. The verdict
// shows its numbers by [bucket.Verdict.Show].
func (s *Store) TakeOne(key string, l *bucket.Limit, cost bucket.Tokens) (bucket.Verdict, error) {
	if v, ok := s.takeOne(key, l, cost, 0); ok {
		return v, nil
	}
	snaps, _, err := s.takeLocked(nil, []mete.Charge{{Key: key, Limit: *l, Cost: cost}}, mete.Mode{})
	if err != nil {
		return bucket.Verdict{}, err
	}
	return snaps[0].Verdict(), nil
}

// takeOne takes from one bucket, or says that it must be done under locks.
func (s *Store) takeOne(key string, l *bucket.Limit, cost bucket.Tokens, maxWait time.Duration) (bucket.Verdict, bool) {
	now := s.instant()
	h := s.hasher.hash(key)
	if v, ok := s.takeKnown(h, l, cost, maxWait, now); ok {
		return v, true
	}
	return s.takeNew(h, l, cost, maxWait, now)
}

// takeKnown decides about one bucket without a lock, or says that it cannot: the
// bucket is absent, locked, put aside, or of another shape.
func (s *Store) takeKnown(h hash, l *bucket.Limit, cost bucket.Tokens, maxWait time.Duration, now bucket.Instant) (bucket.Verdict, bool) {
	for range spins {
		sl, word := s.tables[s.index(h)].Load().find(h)
		if sl == nil || word&(locked|virtual) != virtual {
			switch {
			case sl == nil || word&locked != 0:
				return bucket.Verdict{}, false
			case word&aside != 0:
				return s.takeAside(h, l, cost, maxWait)
			}
			return s.takePlain(h, l, cost, maxWait, now)
		}
		// That will be over in no time. A denial waits, too: another bucket of the same
		// take may show already that it was admitted.
		if word&busy != 0 {
			continue
		}
		at := atomic.LoadUint64(&sl.at)
		if at&plainAt != 0 || !l.SameShape(&s.shape(atomic.LoadUint64(&sl.tag)).Limit) {
			return bucket.Verdict{}, false
		}
		n, _ := l.Refill()
		refilled, _ := s.elapsed(bucket.Instant(at), n)
		spent, asOf, v := l.SpendOwn(max(int64(word&payloadMask)-int64(refilled), 0), bucket.Instant(at), now, cost, maxWait)
		if !v.Allowed() {
			// The denial holds if the word is as it was, for then all that was read
			// belonged together.
			if atomic.LoadUint64(&sl.word) == word {
				return v, true
			}
			continue
		}
		refilled, fits := s.elapsed(asOf, n)
		next := refilled + uint64(spent)
		// A word never counts back, but where the capacity was lowered or now is older
		// than the last take: whoever has the lock can tell.
		if !fits || next > payloadMask || next < word&payloadMask {
			return bucket.Verdict{}, false
		}
		// The process's own clock does not step back, so it can do without.
		if asOf := uint64(asOf); s.now != nil && asOf != at && !atomic.CompareAndSwapUint64(&sl.at, at, asOf) {
			continue
		}
		if atomic.CompareAndSwapUint64(&sl.word, word, word&^payloadMask|next) {
			return v, true
		}
	}
	return bucket.Verdict{}, false
}

// takePlain is takeKnown for a bucket whose state takes both words.
func (s *Store) takePlain(h hash, l *bucket.Limit, cost bucket.Tokens, maxWait time.Duration, now bucket.Instant) (bucket.Verdict, bool) {
	for range spins {
		sl, word := s.tables[s.index(h)].Load().find(h)
		if sl == nil || word&(locked|virtual|aside) != 0 {
			return bucket.Verdict{}, false
		}
		at, shape := atomic.LoadUint64(&sl.at), s.shape(atomic.LoadUint64(&sl.tag))
		if word&busy != 0 {
			continue // that will be over in no time
		}
		if at&plainAt == 0 || !l.SameShape(&shape.Limit) {
			return bucket.Verdict{}, false
		}
		var state bucket.State
		s.decodeTo(&state, word, at, shape)
		asOf, prev := state.AsOf, state.Prev
		v := l.SpendOn(&state, now, cost, maxWait)
		if !v.Allowed() {
			if atomic.LoadUint64(&sl.word) == word {
				return v, true
			}
			continue
		}
		if state.AsOf == asOf && state.Prev == prev && sl.addPlain(word, &state, shape) {
			return v, true
		}
		next, second, ok := s.encode(&state, shape)
		if !ok || next&virtual != 0 {
			return bucket.Verdict{}, false
		}
		if atomic.CompareAndSwapUint64(&sl.word, word, word|busy) {
			if atomic.LoadUint64(&sl.at) != at { // the generations have gone round meanwhile
				atomic.StoreUint64(&sl.word, word)
				continue
			}
			atomic.StoreUint64(&sl.at, second)
			atomic.StoreUint64(&sl.word, next|bump(word))
			return v, true
		}
	}
	return bucket.Verdict{}, false
}

// addPlain commits a take that leaves the second word as it is: with the first
// alone, like that of a virtual one.
func (sl *slot) addPlain(word uint64, state *bucket.State, shape *shape) bool {
	payload := uint64(state.Spent)
	if shape.Algorithm() == bucket.SlidingWindow {
		cur := uint64(state.Spent - state.Prev)
		if cur>>windowBits != 0 {
			return false
		}
		payload = cur<<lowBits | word&lowMask
	}
	return atomic.CompareAndSwapUint64(&sl.word, word, word&^payloadMask|payload)
}

// spins is how often a take tries again before it queues for the shard's mutex.
const spins = 100

// takeNew decides about one bucket that is absent, and so full, or says that it
// cannot: the bucket is there after all, or the store is full.
func (s *Store) takeNew(h hash, l *bucket.Limit, cost bucket.Tokens, maxWait time.Duration, now bucket.Instant) (bucket.Verdict, bool) {
	shape, err := s.shapeOf(l)
	if err != nil || l.Algorithm() == bucket.SlidingLog {
		return bucket.Verdict{}, false
	}
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	// Under the lock: the key may have been in the overflow bucket just now.
	overload := bucket.Instant(s.overload.Load())
	if overload != 0 && s.instant() < overload {
		return bucket.Verdict{}, false
	}
	if sl, _ := sh.table.Load().find(h); sl != nil {
		return bucket.Verdict{}, false
	}
	state, v := l.Spend(bucket.State{AsOf: max(sh.forgot, overload)}, now, cost, maxWait)
	if !v.Allowed() {
		return v, true
	}
	sl := s.room(sh, h, now, false)
	if sl == nil {
		return bucket.Verdict{}, false
	}
	// room may have forgotten buckets, but none later than now.
	s.save(sl, h, state, shape, 0)
	return v, true
}
