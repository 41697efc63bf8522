// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/metehq/mete/bucket"
)

// maxNumbers bounds the limits that slots can refer to at a time. Buckets of additional limits become side rows, which
// are slower. Policies have a handful of limits, but programs may create one per call.
const maxNumbers = 1 << numberBits

// limits numbers limits, so that a slot stores its limit in two bytes. A limit with [bucket.AnchorKey] has one
// number for all keys, because [bucket.Limit.ForKey] computes the start of the intervals from the key.
//
// When all numbers are used, [Store.reclaim] frees the numbers that no slot uses. Entries are immutable, so
// readers need no lock. A reader may hold the entry of a reused number. The slot's word has then changed, and
// every reader compares the word before it answers.
type limits struct {
	chunks [maxNumbers / chunkSize]atomic.Pointer[chunk]
	recent [64]atomic.Pointer[entry] // by hash

	mu     sync.Mutex // guards the fields below, and writes to chunks
	byName map[familyLimit]*entry
	next   uint64   // the lowest number never used
	free   []uint64 // free numbers below next

	exhausted atomic.Bool // a limit got no number since the last reclaim step
	round     reclaimRound
}

const chunkSize = 1 << 8

type chunk [chunkSize]atomic.Pointer[entry]

// A familyLimit is a limit of one family of keys. Families have separate numbers, so that [Store.ClearFamilies]
// finds the slots of a family without their keys.
type familyLimit struct {
	limit  bucket.Limit
	family string // see [store.Family]
}

// An entry is a familyLimit and its number. Only its mark changes.
type entry struct {
	familyLimit
	gain   bucket.Tokens // refill of a virtual state per microsecond; 1 for the zero limit
	first  int64         // of a sliding window: index of the last window before the store's start
	number uint64
	mark   atomic.Uint32
}

// The marks of an entry. A lookup of the number sets it to used. A round of reclaim sets it to idle, and later
// to free unless a lookup has used it since.
const (
	entryIdle = iota
	entryUsed
	entryFree
)

// touch marks e used. It returns false if e has lost its number.
func (e *entry) touch() bool {
	for {
		switch e.mark.Load() {
		case entryUsed:
			return true
		case entryFree:
			return false
		}
		if e.mark.CompareAndSwap(entryIdle, entryUsed) {
			return true
		}
	}
}

// init assigns number 0 to the zero limit permanently. Slots of reset buckets use it.
func (t *limits) init(base bucket.Instant) {
	t.byName = map[familyLimit]*entry{}
	t.add(familyLimit{}, base)
}

func (s *Store) entry(tag uint64) *entry {
	return s.limits.chunks[uint8(tag>>8)].Load()[uint8(tag)].Load()
}

// assignNumber returns the entry of l for a family, or nil if all numbers are used. The caller holds the mutex
// of the shard, and keeps it until the slot contains the number.
func (s *Store) assignNumber(l *bucket.Limit, family string) *entry {
	n, p := l.Refill()
	mixed := uint64(n)*0x9e3779b97f4a7c15 ^ uint64(p)*0xff51afd7ed558ccd ^ uint64(l.Capacity())*0xc4ceb9fe1a85ec53
	recent := &s.limits.recent[mixed>>58]
	if e := recent.Load(); e != nil && e.limit.EqualExceptKey(l) && e.family == family && e.touch() {
		return e
	}
	name := familyLimit{l.ForKey(""), family}
	s.limits.mu.Lock()
	defer s.limits.mu.Unlock()
	e := s.limits.byName[name]
	if e == nil {
		name.family = strings.Clone(family) // the string may be part of a large one
		e = s.limits.add(name, s.base)
	}
	if e == nil {
		s.limits.exhausted.Store(true)
		return nil
	}
	e.touch()
	recent.Store(e)
	return e
}

// add assigns a free number to a limit, or returns nil. The caller holds the mutex.
func (t *limits) add(name familyLimit, base bucket.Instant) *entry {
	number := t.next
	switch {
	case len(t.free) > 0:
		number = t.free[len(t.free)-1]
		t.free = t.free[:len(t.free)-1]
	case number == maxNumbers:
		return nil
	default:
		t.next++
	}
	n, p := name.limit.Refill()
	e := &entry{familyLimit: name, gain: max(n, 1), first: int64(base)/max(p, 1) - 1, number: number}
	e.mark.Store(entryUsed)
	in := &t.chunks[number/chunkSize]
	if in.Load() == nil {
		in.Store(new(chunk))
	}
	in.Load()[number%chunkSize].Store(e)
	t.byName[name] = e
	return e
}

// A reclaimRound reclaims numbers in short steps.
type reclaimRound struct {
	mu   sync.Mutex // guards the fields below; locked before a shard's
	step int
	seen []uint64 // one bit per number: used by a slot
}

// reclaim executes one step of a round if a limit recently got no number. A round marks all entries idle, and then
// collects the numbers in the slots of each shard. Finally it frees the numbers that are still idle and in no slot.
//
// A lookup before the entry became idle happened under the mutex of a shard. The round locks that mutex later,
// and then the slot already contains the number.
//
// The caller holds no mutex. A step takes some microseconds.
func (s *Store) reclaim() {
	r := &s.limits.round
	if !s.limits.exhausted.Load() || !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	s.limits.exhausted.Store(false)
	chunks := len(s.limits.chunks)
	switch at := r.step; {
	case at < chunks:
		if at == 0 {
			r.seen = make([]uint64, maxNumbers/64)
		}
		s.limits.markIdle(at)
	case at < chunks+len(s.shards):
		r.markSeen(&s.shards[at-chunks])
	default:
		s.limits.freeUnused(at - chunks - len(s.shards))
	}
	if r.step++; r.step == 2*chunks+len(s.shards) {
		r.step, r.seen = 0, nil
	}
}

func (t *limits) markIdle(at int) {
	if c := t.chunks[at].Load(); c != nil {
		for i := range c {
			if e := c[i].Load(); e != nil && e.number != 0 {
				e.mark.CompareAndSwap(entryUsed, entryIdle)
			}
		}
	}
}

func (r *reclaimRound) markSeen(sh *shard) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	slots := sh.table.Load().slots
	for i := range slots {
		if atomic.LoadUint64(&slots[i].word) != 0 {
			number := atomic.LoadUint64(&slots[i].tag) & numberMask
			r.seen[number/64] |= 1 << (number % 64)
		}
	}
}

func (t *limits) freeUnused(at int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.chunks[at].Load()
	if c == nil {
		return
	}
	for i := range c {
		e := c[i].Load()
		if e != nil && t.round.seen[e.number/64]&(1<<(e.number%64)) == 0 && e.mark.CompareAndSwap(entryIdle, entryFree) {
			delete(t.byName, e.familyLimit)
			t.free = append(t.free, e.number)
		}
	}
}
