// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// Take implements [mete.Store]. It waits only for the locks of shards, which are held briefly, and ignores ctx.
// It never fails. The caller may reuse the memory of charges and keys after Take returns.
func (s *Store) Take(_ context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	var allowed bool
	switch {
	case store.HasSlots(charges):
		dst, allowed = s.takeSlots(dst, charges, mode)
		return dst, allowed, nil
	case mode.ID != "" && !mode.DryRun:
		dst, allowed = s.takeWithID(dst, charges, mode)
		return dst, allowed, nil
	case mode.DryRun || mode.UpTo:
	case len(charges) > 1:
		if dst, allowed, ok := s.takeSeveral(dst, charges, mode.MaxWait); ok {
			return dst, allowed, nil
		}
	case len(charges) == 1:
		c := &charges[0]
		if c.Penalty != nil {
			break
		}
		if v, now, ok := s.takeOne(c.Key, &c.Limit, c.Cost, mode.MaxWait, c.Await > 0); ok {
			dst = slices.Grow(dst, 1)[:len(dst)+1]
			v.Show(&dst[len(dst)-1], &c.Limit, c.Cost, now)
			return dst, v.Allowed(), nil
		}
	}
	dst, allowed = s.takeLocked(dst, charges, mode)
	return dst, allowed, nil
}

// TakeOne takes from one bucket. It is the fastest call for programs that limit keys without a policy. The
// verdict fills a snapshot with [bucket.Verdict.Show] and the returned instant of the decision. The caller may
// reuse the memory of key and l.
func (s *Store) TakeOne(key string, l *bucket.Limit, cost bucket.Tokens) (bucket.Verdict, bucket.Instant) {
	if l.Algorithm() != bucket.AlgorithmConcurrency { // a slot needs an ID: only Take can take one
		if v, now, ok := s.takeOne(key, l, cost, 0, false); ok {
			return v, now
		}
	}
	snaps, _ := s.takeLocked(nil, []store.Charge{{Key: key, Limit: *l, Cost: cost}}, mete.Mode{})
	return snaps[0].Verdict()
}

// takeOne takes from one bucket without locks. It returns false if the take needs locks: the bucket is locked,
// has another limit, or is new in a full store. A take that awaits its settlement also needs locks, unless it is the first
// from a full bucket and needs no history: see [bucket.Row.WithAwait].
//
// takeOne reads the clock before it finds the slot. The slot is usually not in the cache: a prefetch loads it while
// the clock is read. Reading the clock waits for earlier memory reads, but not for a prefetch. An earlier clock
// never admits too much, but may deny too much. The word may include another take's cost without the refill that
// this take found. A denial therefore requires the same word before the clock was read. If a denial is likely,
// takeOne reads the word first.
func (s *Store) takeOne(key string, l *bucket.Limit, cost bucket.Tokens, maxWait time.Duration, awaits bool) (bucket.Verdict, bucket.Instant, bool) {
	h := s.hasher.hash(key)
	var now bucket.Instant
	var before uint64 // the word before the clock was read, or 0
	denied := s.denials.flag(h)
	read := l.Algorithm() == bucket.AlgorithmContinuous && !denied.Load()
	t := s.tables[s.index(h)].Load()
	if read {
		prefetch(&t.slots[t.home(h.h0)])
		now = s.instant()
	}
	for try := 0; try < maxSpins; try, t = try+1, s.tables[s.index(h)].Load() {
		sl, word := t.find(h)
		if sl == nil {
			if !read {
				now = s.instant()
			}
			return s.takeNew(h, key, l, now, cost, maxWait)
		}
		if word&(locked|virtual) != virtual {
			return s.takePlain(h, l, cost, maxWait, awaits)
		}
		// A busy slot is released within a few instructions. A denial must wait, too, because another bucket of
		// the same take may already show that the take was admitted.
		if word&busy != 0 {
			continue
		}
		if !read {
			before, now, read = word, s.instant(), true
		}
		at := s.secondWord(t, sl, virtual, now)
		if at&plainAt != 0 || !s.entry(atomic.LoadUint64(&sl.tag)).limit.EqualExceptKey(l) {
			return bucket.Verdict{}, 0, false
		}
		n, _ := l.Refill()
		refilled, _ := s.refillSinceBase(bucket.Instant(at), n)
		spent, asOf, v := l.SpendOwn(max(int64(word&payloadMask)-int64(refilled), 0), bucket.Instant(at), now, cost, maxWait)
		if !v.Allowed() {
			// The denial is valid if the word has not changed: all values that were read are then consistent.
			if word == before && atomic.LoadUint64(&sl.word) == word {
				return v, now, true
			}
			if before == 0 {
				denied.Store(true)
			}
			read = false
			continue
		}
		refilled, fits := s.refillSinceBase(asOf, n)
		next := refilled + uint64(spent)
		// A word never decreases unless now is older than the last take. The take under the lock reads the
		// clock again.
		if !fits || next > payloadMask || next < word&payloadMask || awaits && spent > int64(cost)*l.Unit() {
			return bucket.Verdict{}, 0, false
		}
		// A steady clock does not step back, so its slots need no instant.
		if asOf := uint64(asOf); !s.steady && asOf != at && !atomic.CompareAndSwapUint64(t.secondWord(sl), at, asOf) {
			continue
		}
		if atomic.CompareAndSwapUint64(&sl.word, word, word&^payloadMask|next) {
			if before != 0 && now%clearEvery == 0 {
				denied.Store(false)
			}
			return v, now, true
		}
	}
	return bucket.Verdict{}, 0, false
}

// denials remembers recently denied keys by a few bits of their hashes.
type denials [256]atomic.Bool

func (d *denials) flag(h hash) *atomic.Bool { return &d[uint8(h.h0)] }

// clearEvery is the average number of admissions until a key's denial is cleared. Keys with occasional denials
// must not write the flag on every call.
const clearEvery = 64

// takePlain is takeOne for a bucket with a state in both words or a side row. It returns false for a locked slot.
func (s *Store) takePlain(h hash, l *bucket.Limit, cost bucket.Tokens, maxWait time.Duration, awaits bool) (bucket.Verdict, bucket.Instant, bool) {
	if awaits && l.Algorithm() == bucket.AlgorithmContinuous {
		return bucket.Verdict{}, 0, false
	}
	for range maxSpins {
		t := s.tables[s.index(h)].Load()
		sl, word := t.find(h)
		if sl == nil || word&(locked|virtual) != 0 {
			return bucket.Verdict{}, 0, false
		}
		if word&hasSideRow != 0 {
			return s.takeSideRow(h, l, cost, maxWait)
		}
		at, e := atomic.LoadUint64(t.secondWord(sl)), s.entry(atomic.LoadUint64(&sl.tag))
		if word&busy != 0 {
			continue // released within a few instructions
		}
		if at&plainAt == 0 || !e.limit.EqualExceptKey(l) {
			return bucket.Verdict{}, 0, false
		}
		var state bucket.State
		s.decodeTo(&state, word, at, e)
		asOf, prev := state.AsOf, state.Prev
		now := s.instant()
		v := l.SpendOn(&state, now, cost, maxWait)
		if !v.Allowed() {
			if atomic.LoadUint64(&sl.word) == word {
				return v, now, true
			}
			continue
		}
		if state.Log == nil && state.AsOf == asOf && state.Prev == prev && sl.addPlain(word, &state, e) {
			return v, now, true
		}
		next, second, ok := s.encode(&state, e)
		if !ok || next&virtual != 0 {
			return bucket.Verdict{}, 0, false
		}
		if atomic.CompareAndSwapUint64(&sl.word, word, word|busy) {
			if atomic.LoadUint64(t.secondWord(sl)) != at { // the generation has wrapped around
				atomic.StoreUint64(&sl.word, word)
				continue
			}
			atomic.StoreUint64(t.secondWord(sl), second)
			atomic.StoreUint64(&sl.word, next|nextGeneration(word))
			return v, now, true
		}
	}
	return bucket.Verdict{}, 0, false
}

// addPlain commits a take that changes only the first word.
func (sl *slot) addPlain(word uint64, state *bucket.State, e *entry) bool {
	payload := uint64(state.Spent)
	if e.limit.Algorithm() == bucket.AlgorithmSlidingWindow {
		cur := uint64(state.Spent - state.Prev)
		if cur>>windowBits != 0 {
			return false
		}
		payload = cur<<lowBits | word&lowMask
	}
	return atomic.CompareAndSwapUint64(&sl.word, word, word&^payloadMask|payload)
}

// maxSpins is the number of attempts of a take before it waits for the shard's mutex.
const maxSpins = 100

// takeNew decides about one absent, and therefore full, bucket. It returns false if the bucket exists after
// all, or if the store is full. now may be earlier than the last change of the shard: a bucket that was not
// full at now and is absent was evicted later.
func (s *Store) takeNew(h hash, key string, l *bucket.Limit, now bucket.Instant, cost bucket.Tokens, maxWait time.Duration) (bucket.Verdict, bucket.Instant, bool) {
	if l.Algorithm() == bucket.AlgorithmSlidingLog {
		return bucket.Verdict{}, 0, false
	}
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	// Check under the lock: the key may just have used the overflow bucket.
	overload := bucket.Instant(s.overload.Load())
	if overload != 0 && now < overload {
		return bucket.Verdict{}, 0, false
	}
	if sl, _ := sh.table.Load().find(h); sl != nil {
		return bucket.Verdict{}, 0, false
	}
	state, v := l.Spend(bucket.State{AsOf: max(sh.evictedAt, overload)}, now, cost, maxWait)
	if !v.Allowed() {
		return v, now, true
	}
	sl := s.allocate(sh, h, now, s.maxKeys)
	if sl == nil {
		return bucket.Verdict{}, 0, false
	}
	// allocate may have evicted buckets, but none at a later instant than now.
	s.save(sl, h, store.Family(key), l, &state, 0)
	return v, now, true
}
