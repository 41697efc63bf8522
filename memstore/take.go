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

// Take implements [mete.Store]. It waits for nothing but the locks of shards,
// which nobody holds for long, and does not look at ctx. It never fails.
//
// The store keeps neither the charges nor their keys after Take returns: a bucket is
// found by a hash of its key. The caller may use the memory of both again at once.
func (s *Store) Take(_ context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	var allowed bool
	switch {
	case mode.ID != "" && !mode.DryRun:
		dst, allowed = s.takeOnce(dst, charges, mode)
		return dst, allowed, nil
	case mode.DryRun || mode.UpTo:
	case len(charges) > 1:
		if dst, allowed, ok := s.takeSeveral(dst, charges, mode.MaxWait); ok {
			return dst, allowed, nil
		}
	case len(charges) == 1:
		c := &charges[0]
		if v, now, ok := s.takeOne(c.Key, &c.Limit, c.Cost, mode.MaxWait); ok {
			dst = slices.Grow(dst, 1)[:len(dst)+1]
			v.Show(&dst[len(dst)-1], &c.Limit, c.Cost, now)
			return dst, v.Allowed(), nil
		}
	}
	dst, allowed = s.takeLocked(dst, charges, mode)
	return dst, allowed, nil
}

// TakeOne is [Store.Take] from one bucket, for programs that limit by keys and
// need neither a policy nor several limits: nothing is shorter. The verdict
// shows its numbers by [bucket.Verdict.Show], with the instant of the decision. The
// store keeps neither key nor l.
func (s *Store) TakeOne(key string, l *bucket.Limit, cost bucket.Tokens) (bucket.Verdict, bucket.Instant) {
	if v, now, ok := s.takeOne(key, l, cost, 0); ok {
		return v, now
	}
	snaps, _ := s.takeLocked(nil, []store.Charge{{Key: key, Limit: *l, Cost: cost}}, mete.Mode{})
	return snaps[0].Verdict()
}

// takeOne takes from one bucket, or reports that it must be done under locks: the
// bucket is locked, or of another limit, or new while the store is full.
//
// It reads the clock before it searches for the slot. The slot is often in no cache: a
// prefetch brings it there while the clock is read, which waits for all earlier reads
// of memory, but not for a prefetch. An earlier clock never admits too much, but it
// may deny too much: the bucket may miss what another take spent, and not yet hold what
// that take found refilled. A denial therefore needs a word that was the same before
// the clock was read. Where a denial is likely, takeOne reads the word first.
func (s *Store) takeOne(key string, l *bucket.Limit, cost bucket.Tokens, maxWait time.Duration) (bucket.Verdict, bucket.Instant, bool) {
	h := s.hasher.hash(key)
	var now bucket.Instant
	var before uint64 // the word before the clock was read; 0 if it was not known then
	denied := s.denied.of(h)
	read := l.Algorithm() == bucket.Continuous && !denied.Load()
	t := s.tables[s.index(h)].Load()
	if read {
		prefetch(&t.slots[t.home(h.h0)])
		now = s.instant()
	}
	for try := 0; try < spins; try, t = try+1, s.tables[s.index(h)].Load() {
		sl, word := t.find(h)
		if sl == nil {
			if !read {
				now = s.instant()
			}
			return s.takeNew(h, key, l, now, cost, maxWait)
		}
		if word&(locked|virtual) != virtual {
			return s.takePlain(h, l, cost, maxWait)
		}
		// That will be over in no time. A denial waits, too: another bucket of the same
		// take may show already that it was admitted.
		if word&busy != 0 {
			continue
		}
		if !read {
			before, now, read = word, s.instant(), true
		}
		at := s.second(t, sl, virtual, now)
		if at&plainAt != 0 || !s.entry(atomic.LoadUint64(&sl.tag)).limit.Same(l) {
			return bucket.Verdict{}, 0, false
		}
		n, _ := l.Refill()
		refilled, _ := s.elapsed(bucket.Instant(at), n)
		spent, asOf, v := l.SpendOwn(max(int64(word&payloadMask)-int64(refilled), 0), bucket.Instant(at), now, cost, maxWait)
		if !v.Allowed() {
			// The denial holds if the word is as it was, for then all that was read
			// belonged together.
			if word == before && atomic.LoadUint64(&sl.word) == word {
				return v, now, true
			}
			if before == 0 {
				denied.Store(true)
			}
			read = false
			continue
		}
		refilled, fits := s.elapsed(asOf, n)
		next := refilled + uint64(spent)
		// A word never counts back, but where now is older than the last take: the take
		// under the lock reads the clock again.
		if !fits || next > payloadMask || next < word&payloadMask {
			return bucket.Verdict{}, 0, false
		}
		// A steady clock does not step back, so it can do without.
		if asOf := uint64(asOf); !s.steady && asOf != at && !atomic.CompareAndSwapUint64(t.at(sl), at, asOf) {
			continue
		}
		if atomic.CompareAndSwapUint64(&sl.word, word, word&^payloadMask|next) {
			if before != 0 && now%rarely == 0 {
				denied.Store(false)
			}
			return v, now, true
		}
	}
	return bucket.Verdict{}, 0, false
}

// denials remembers by a few bits of their hashes which keys were denied lately.
type denials [256]atomic.Bool

func (d *denials) of(h hash) *atomic.Bool { return &d[uint8(h.h0)] }

// rarely is how many admissions it takes, about, until denials forgets one: keys that
// are denied now and then must not write there with each call.
const rarely = 64

// takePlain is takeOne for a bucket whose state takes both words, or is kept aside. It
// gives up on a slot that is locked.
func (s *Store) takePlain(h hash, l *bucket.Limit, cost bucket.Tokens, maxWait time.Duration) (bucket.Verdict, bucket.Instant, bool) {
	for range spins {
		t := s.tables[s.index(h)].Load()
		sl, word := t.find(h)
		if sl == nil || word&(locked|virtual) != 0 {
			return bucket.Verdict{}, 0, false
		}
		if word&aside != 0 {
			return s.takeAside(h, l, cost, maxWait)
		}
		at, e := atomic.LoadUint64(t.at(sl)), s.entry(atomic.LoadUint64(&sl.tag))
		if word&busy != 0 {
			continue // that will be over in no time
		}
		if at&plainAt == 0 || !e.limit.Same(l) {
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
		if state.AsOf == asOf && state.Prev == prev && sl.addPlain(word, &state, e) {
			return v, now, true
		}
		next, second, ok := s.encode(&state, e)
		if !ok || next&virtual != 0 {
			return bucket.Verdict{}, 0, false
		}
		if atomic.CompareAndSwapUint64(&sl.word, word, word|busy) {
			if atomic.LoadUint64(t.at(sl)) != at { // the generations have gone round meanwhile
				atomic.StoreUint64(&sl.word, word)
				continue
			}
			atomic.StoreUint64(t.at(sl), second)
			atomic.StoreUint64(&sl.word, next|bump(word))
			return v, now, true
		}
	}
	return bucket.Verdict{}, 0, false
}

// addPlain commits a take that leaves the second word as it is: with the first
// alone, like that of a virtual one.
func (sl *slot) addPlain(word uint64, state *bucket.State, e *entry) bool {
	payload := uint64(state.Spent)
	if e.limit.Algorithm() == bucket.SlidingWindow {
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

// takeNew decides about one bucket that is absent, and so full, or reports that it
// cannot: the bucket is there after all, or the store is full. The instant now may be
// earlier than the last change of the shard: a bucket that was not full at now and is
// absent was forgotten later.
func (s *Store) takeNew(h hash, key string, l *bucket.Limit, now bucket.Instant, cost bucket.Tokens, maxWait time.Duration) (bucket.Verdict, bucket.Instant, bool) {
	if l.Algorithm() == bucket.SlidingLog {
		return bucket.Verdict{}, 0, false
	}
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	// Under the lock: the key may have been in the overflow bucket just now.
	overload := bucket.Instant(s.overload.Load())
	if overload != 0 && now < overload {
		return bucket.Verdict{}, 0, false
	}
	if sl, _ := sh.table.Load().find(h); sl != nil {
		return bucket.Verdict{}, 0, false
	}
	state, v := l.Spend(bucket.State{AsOf: max(sh.forgot, overload)}, now, cost, maxWait)
	if !v.Allowed() {
		return v, now, true
	}
	sl := s.room(sh, h, now, s.maxKeys)
	if sl == nil {
		return bucket.Verdict{}, 0, false
	}
	// room may have forgotten buckets, but none later than now.
	s.save(sl, h, store.Family(key), l, &state, 0)
	return v, now, true
}
