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

// A table is an array of slots with linear probing: a key lives in the first
// slot from its home on that was free when it came. Slots are never emptied,
// only taken over, so readers need no lock: a probe that meets an empty slot
// has seen all there is. A table always has an empty slot.
type table struct {
	slots []slot
	used  int // slots that are not empty; guarded by the shard's mutex

	// ats are the second words of the slots. It is nil while all slots are virtual
	// under a clock that never steps back: most stores need none. It is set under the
	// shard's mutex, before the first word that needs it: a reader of such a word sees it.
	ats []uint64
}

// at returns the second word of one of the slots, in a table that has them.
func (t *table) at(sl *slot) *uint64 {
	i := (uintptr(unsafe.Pointer(sl)) - uintptr(unsafe.Pointer(unsafe.SliceData(t.slots)))) / unsafe.Sizeof(slot{})
	return &t.ats[i]
}

// Load factors, in 32nds: a table is rebuilt when it is fuller than fullest, and
// starts as full as fresh. Growing copies each bucket about 1.3 times over its
// life. As the shards start with tables of different sizes, they grow at
// different times: a store uses about 40 bytes per bucket at any size, and not 28
// and 51 by turns.
const (
	fullest = 27
	fresh   = 15
)

// keepFor is how long a full bucket is kept after its last take while there is
// room: the next take of its key is then the fast one.
const keepFor = 10 * time.Second

// sweepEvery is how long a shard in which a sweep freed little is left alone, at
// least, and sweepBucket how long for each bucket of the store: to look at one takes
// about 0.1 µs, so a flood of new keys costs at most a few hundredths of a core at the
// bound, however many buckets there are.
const (
	sweepEvery  = 100 * time.Millisecond
	sweepBucket = 2 * time.Microsecond
)

// minSlots and the next few numbers are the sizes of the shards' first tables.
const minSlots = 8

// A shard is a table that is locked and rebuilt by itself. The tables' pointers
// stand elsewhere, side by side: they are all that most takes read.
type shard struct {
	table    *atomic.Pointer[table]
	minSlots int

	mu        sync.Mutex        // guards what is below, and the structure of table
	nextSweep bucket.Instant    // no sweep is worth it before
	forgot    bucket.Instant    // the last instant at which a full bucket was left behind
	aside     map[hash]asideRow // rows that do not fit their slots
	_         [64 - 6*8]byte
}

// home is where the search for a hash starts: the tables are in the order of h0,
// so that rebuilding one walks both in order.
func (t *table) home(h0 uint64) int {
	i, _ := bits.Mul64(h0, uint64(len(t.slots)))
	return int(i)
}

// find returns h's slot and the word it had before its hash was compared; nil
// if there is none. Without the shard's mutex, nil only means "look again under
// it", and the slot may be anything else by the time the caller looks at it:
// its word tells.
func (t *table) find(h hash) (*slot, uint64) {
	slots := t.slots
	for i := t.home(h.h0); ; {
		sl := &slots[i]
		w := atomic.LoadUint64(&sl.word)
		if w == 0 {
			return nil, 0
		}
		if sl.holds(h) {
			return sl, w
		}
		if i++; i == len(slots) {
			i = 0
		}
	}
}

// mostOverflow bounds the overflow buckets, of which there is one for each limit.
const mostOverflow = 1 << 16

// room finds a slot for h, which has none. Where the store has as many buckets as
// most, that is the slot of a full bucket, locked, or nil where there is none to be
// had; else it is an empty one. The caller holds the shard's mutex and fills the slot
// in with [Store.save]; pointers to other slots of the shard are stale afterwards.
func (s *Store) room(sh *shard, h hash, now bucket.Instant, most int64) *slot {
	if s.used.Load() >= most {
		if sl := s.takeOver(sh, h, now); sl != nil {
			return sl
		}
		if s.sweep(sh, now); s.used.Load() >= most {
			s.sweepOther(now)
		}
		if s.used.Load() >= most {
			return nil
		}
	}
	t := sh.table.Load()
	if (t.used+1)*32 > len(t.slots)*fullest {
		t = s.rebuild(sh, now, now.Add(-keepFor))
	}
	s.used.Add(1)
	t.used++
	return t.empty(h.h0)
}

// empty returns the first empty slot from the home of h0.
func (t *table) empty(h0 uint64) *slot {
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
		if w&(locked|busy) == 0 && s.full(t, sl, w, now) && atomic.CompareAndSwapUint64(&sl.word, w, w|locked) {
			sh.forgot = max(sh.forgot, now)
			sh.drop(sl, w)
			atomic.StoreUint64(&sl.word, w&^aside|locked)
			return sl
		}
		if i++; i == len(t.slots) {
			i = 0
		}
	}
}

// full reports whether the slot of t, whose word is w, is full at now. It may say no
// for one interval longer than that is so.
func (s *Store) full(t *table, sl *slot, w uint64, now bucket.Instant) bool {
	if w&aside != 0 {
		return now >= bucket.Instant(atomic.LoadUint64(t.at(sl))&^plainAt)
	}
	e := s.entry(atomic.LoadUint64(&sl.tag))
	if w&virtual != 0 {
		// If its instant is to come, the state is beyond what is refilled by now.
		refilled, _ := s.elapsed(now, e.gain)
		return now >= s.base && w&payloadMask <= refilled
	}
	// One that is full only at an instant to come is not to be forgotten: its time
	// would run back.
	state := s.decode(w, atomic.LoadUint64(t.at(sl)), e)
	return state.AsOf <= now && e.limit.Full(state, now)
}

// rebuild replaces the shard's table by one of the right size. Buckets that are
// full at now and were so at idle are left behind. The caller holds the shard's
// mutex; slots it has locked stay, and stay locked.
//
// Slots of the old table stay locked for good. A take that finds one goes to the
// shard's mutex, and so to the new table. A shard holds up to sixteen thousand buckets.
// The store grows one shard at a time, and each shard in one go.
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
			// Locked, it can be judged once and for all.
			if w = sl.lock(); s.full(old, sl, w, idle) && s.full(old, sl, w, now) {
				sh.drop(sl, w)
				atomic.StoreUint64(&sl.word, dropped)
				sh.forgot = max(sh.forgot, min(idle, now))
				continue
			}
		}
		live++
		plain = plain || w&virtual == 0
	}
	t := &table{slots: make([]slot, max(wholePages((live+1)*32/fresh), sh.minSlots))}
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
		to := t.empty(sl.h0)
		*to = slot{word: w, h0: sl.h0, tag: sl.tag}
		if plain && old.ats != nil {
			*t.at(to) = atomic.LoadUint64(&old.ats[i])
		}
		t.used++
	}
	s.used.Add(int64(t.used - old.used))
	sh.table.Store(t)
	return t
}

// wholePages rounds the size of a large table up to what the allocator would
// give it anyway: whole pages of 8 KiB.
func wholePages(slots int) int {
	const perPage = 8 << 10 / int(unsafe.Sizeof(slot{}))
	if slots < 4*perPage {
		return slots
	}
	return (slots + perPage - 1) / perPage * perPage
}

// sweep frees the slots of full buckets, if that is due. The caller holds the
// shard's mutex.
func (s *Store) sweep(sh *shard, now bucket.Instant) {
	// A clock that has stepped back must not put the next sweep off for long.
	pause := max(sweepEvery, time.Duration(s.used.Load())*sweepBucket)
	if now < sh.nextSweep && sh.nextSweep <= now.Add(pause) {
		return
	}
	before := sh.table.Load().used
	if after := s.rebuild(sh, now, now).used; (before-after)*16 <= before {
		sh.nextSweep = now.Add(pause)
	}
}

// sweepOther sweeps a few other shards, in turn: the store is full, but it may
// be there that buckets are.
func (s *Store) sweepOther(now bucket.Instant) {
	for range 4 {
		sh := &s.shards[s.swept.Add(1)&uint64(len(s.shards)-1)]
		// The caller holds shards already: waiting for another could deadlock.
		if sh.mu.TryLock() {
			s.sweep(sh, now)
			sh.mu.Unlock()
		}
	}
}
