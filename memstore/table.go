// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/metehq/mete/bucket"
)

// A table is an array of slots with linear probing. A key is in the first slot from its home that was free when it
// arrived. Slots are never emptied, only replaced, so readers need no lock: a probe ends at the first empty slot. A
// table always has an empty slot.
type table struct {
	slots []slot
	used  int // slots in use; guarded by the shard's mutex

	// ats holds the second words of the slots. It is nil while all slots are virtual under a clock that never
	// steps back, as in most stores. It is set under the shard's mutex before the first word that needs it, so
	// a reader of such a word sees it.
	ats []uint64
}

// secondWord returns the second word of a slot. The table must have second words.
func (t *table) secondWord(sl *slot) *uint64 {
	i := (uintptr(unsafe.Pointer(sl)) - uintptr(unsafe.Pointer(unsafe.SliceData(t.slots)))) / unsafe.Sizeof(slot{})
	return &t.ats[i]
}

// Load factors in 32nds: a table is rebuilt above maxLoad, and starts at freshLoad. Growth copies each bucket
// about 1.3 times over its life. The first tables of the shards have different sizes, so the shards grow at
// different times. A store therefore uses about 40 bytes per bucket at any size, instead of between 28 and 51.
const (
	maxLoad   = 27
	freshLoad = 15
)

// idleGrace is how long a full bucket stays after its last take while there is space. The next take of its key is
// then fast.
const idleGrace = 10 * time.Second

// After a sweep that freed little, a shard is not swept for sweepEvery, or for sweepBucket per bucket of the
// store if that is longer. Checking a bucket takes about 0.1 µs, so at the bound a flood of new keys costs at
// most a few percent of a core.
const (
	sweepEvery  = 100 * time.Millisecond
	sweepBucket = 2 * time.Microsecond
)

// minSlots is the smallest size of a first table. The shards start with minSlots or one of the next few sizes.
const minSlots = 8

// A shard is a table with its own lock. The pointers to the tables are in one separate array, because most
// takes read nothing else.
type shard struct {
	table    *atomic.Pointer[table]
	minSlots int

	mu        sync.Mutex       // guards the fields below and the structure of table.
	nextSweep bucket.Instant   // no sweep before this instant
	evictedAt bucket.Instant   // the last instant at which a full bucket was evicted.
	sideRows  map[hash]sideRow // rows that do not fit a slot
	penalties map[hash]penalty // by hashes with a cleared number; nil until the first
	_         [64 - 7*8]byte
}

// home returns the start of the search for a hash. Tables are in the order of h0, so a rebuild walks both
// tables in order.
func (t *table) home(h0 uint64) int {
	i, _ := bits.Mul64(h0, uint64(len(t.slots)))
	return int(i)
}

// find returns h's slot and the word read before the comparison of its hash, or nil. Without the shard's mutex,
// nil only means that the caller must search again under the mutex. The slot may have changed by the time the
// caller reads it, and its word then differs.
func (t *table) find(h hash) (*slot, uint64) {
	slots := t.slots
	for i := t.home(h.h0); ; {
		sl := &slots[i]
		w := atomic.LoadUint64(&sl.word)
		if w == 0 {
			return nil, 0
		}
		if sl.hasHash(h) {
			return sl, w
		}
		if i++; i == len(slots) {
			i = 0
		}
	}
}

const maxOverflow = 1 << 16

// allocate returns a slot for h, which has none. At the bound of most buckets, it returns the locked slot of a full
// bucket, or nil if there is none. Otherwise it returns an empty slot. The caller holds the shard's mutex and fills
// the slot with [Store.save]. Pointers to other slots of the shard are stale afterwards.
func (s *Store) allocate(sh *shard, h hash, now bucket.Instant, most int64) *slot {
	if s.used.Load() >= most {
		if sl := s.takeOver(sh, h, now); sl != nil {
			return sl
		}
		if s.sweep(sh, now); s.used.Load() >= most {
			s.sweepOthers(now)
		}
		if s.used.Load() >= most {
			return nil
		}
	}
	t := sh.table.Load()
	if (t.used+1)*32 > len(t.slots)*maxLoad {
		t = s.rebuild(sh, now, now.Add(-idleGrace))
	}
	s.used.Add(1)
	t.used++
	return t.firstEmpty(h.h0)
}

func (t *table) firstEmpty(h0 uint64) *slot {
	i := t.home(h0)
	for atomic.LoadUint64(&t.slots[i].word) != 0 {
		if i++; i == len(t.slots) {
			i = 0
		}
	}
	return &t.slots[i]
}

// takeOver locks the first full bucket between h's home and the next empty slot.
func (s *Store) takeOver(sh *shard, h hash, now bucket.Instant) *slot {
	t := sh.table.Load()
	for i := t.home(h.h0); ; {
		sl := &t.slots[i]
		w := atomic.LoadUint64(&sl.word)
		if w == 0 {
			return nil
		}
		if w&(locked|busy) == 0 && s.isFull(t, sl, w, now) && atomic.CompareAndSwapUint64(&sl.word, w, w|locked) {
			sh.evictedAt = max(sh.evictedAt, now)
			sh.dropSideRow(sl, w)
			atomic.StoreUint64(&sl.word, w&^hasSideRow|locked)
			return sl
		}
		if i++; i == len(t.slots) {
			i = 0
		}
	}
}

// isFull reports whether the slot of t with the word w is full at now. It may return false for one interval too
// long.
func (s *Store) isFull(t *table, sl *slot, w uint64, now bucket.Instant) bool {
	if w&hasSideRow != 0 {
		return now >= bucket.Instant(atomic.LoadUint64(t.secondWord(sl))&^plainAt)
	}
	e := s.entry(atomic.LoadUint64(&sl.tag))
	if w&virtual != 0 {
		// A state with a future instant exceeds the refill until now.
		refilled, _ := s.refillSinceBase(now, e.gain)
		return now >= s.base && w&payloadMask <= refilled
	}
	// A bucket that is full only at a future instant must not be evicted: its time would run back.
	state := s.decode(w, atomic.LoadUint64(t.secondWord(sl)), e)
	return state.AsOf <= now && e.limit.Full(state, now)
}

// rebuild replaces the shard's table by one of the right size, without buckets that are full at both now and
// idle. The caller holds the shard's mutex. Slots that the caller has locked stay locked.
//
// Slots of the old table stay locked forever. A take that finds one waits for the shard's mutex, and then uses the
// new table. A shard holds up to 16,384 buckets and is rebuilt in one step. The store grows one shard at a time.
func (s *Store) rebuild(sh *shard, now, idle bucket.Instant) *table {
	old, live, plain := sh.table.Load(), 0, !s.steady
	var ours []int // locked by the caller
	for i := range old.slots {
		sl := &old.slots[i]
		w := atomic.LoadUint64(&sl.word)
		switch {
		case w == 0:
			continue
		case w&locked != 0:
			ours = append(ours, i)
		default:
			// Lock the slot first, so that its state cannot change.
			if w = sl.lock(); s.isFull(old, sl, w, idle) && s.isFull(old, sl, w, now) {
				sh.dropSideRow(sl, w)
				atomic.StoreUint64(&sl.word, dropped)
				sh.evictedAt = max(sh.evictedAt, min(idle, now))
				continue
			}
		}
		live++
		plain = plain || w&virtual == 0
	}
	t := &table{slots: make([]slot, max(roundToPages((live+1)*32/freshLoad), sh.minSlots))}
	if plain {
		t.ats = make([]uint64, len(t.slots))
	}
	for i := range old.slots {
		sl := &old.slots[i]
		w := atomic.LoadUint64(&sl.word)
		if w == 0 || w == dropped {
			continue
		}
		if len(ours) > 0 && ours[0] == i {
			ours = ours[1:]
		} else {
			w &^= locked
		}
		to := t.firstEmpty(sl.h0)
		*to = slot{word: w, h0: sl.h0, tag: sl.tag}
		if plain && old.ats != nil {
			*t.secondWord(to) = atomic.LoadUint64(&old.ats[i])
		}
		t.used++
	}
	s.used.Add(int64(t.used - old.used))
	sh.table.Store(t)
	return t
}

// roundToPages rounds the size of a large table up to whole pages of 8 KiB, which the allocator would use anyway.
func roundToPages(slots int) int {
	const perPage = 8 << 10 / int(unsafe.Sizeof(slot{}))
	if slots < 4*perPage {
		return slots
	}
	return (slots + perPage - 1) / perPage * perPage
}

// sweep frees the slots of full buckets if a sweep is due. The caller holds the shard's mutex.
func (s *Store) sweep(sh *shard, now bucket.Instant) {
	// A clock that stepped back must not delay the next sweep for long.
	pause := max(sweepEvery, time.Duration(s.used.Load())*sweepBucket)
	if now < sh.nextSweep && sh.nextSweep <= now.Add(pause) {
		return
	}
	before := sh.table.Load().used
	if after := s.rebuild(sh, now, now).used; (before-after)*16 <= before {
		sh.nextSweep = now.Add(pause)
	}
}

// sweepOthers sweeps a few other shards in turn, because full buckets may be there.
func (s *Store) sweepOthers(now bucket.Instant) {
	for range 4 {
		sh := &s.shards[s.sweepCursor.Add(1)&uint64(len(s.shards)-1)]
		// The caller already holds shards: waiting for another could deadlock.
		if sh.mu.TryLock() {
			s.sweep(sh, now)
			sh.mu.Unlock()
		}
	}
}
