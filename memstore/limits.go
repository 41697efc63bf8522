// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/metehq/mete/bucket"
)

// maxNumbers bounds the limits that slots can name at a time. A bucket of a limit
// that gets no number is kept aside: slower, and otherwise the same. Policies have a
// handful of limits; programs and clients may make up one for every call.
const maxNumbers = 1 << numberBits

// limits numbers limits, so that a slot names its own in two bytes.
//
// A limit with [bucket.AnchorKey] has one number for all keys: a start of intervals
// is a function of its key, and [bucket.Limit.For] of no key stands for all.
//
// When all numbers are taken, those that no slot names are taken back: see
// [Store.reclaim]. Entries do not change, so readers need no lock. A reader may hold
// the entry of a number that another limit has by now: then the slot has changed,
// too, and so has the word that each reader compares before it answers.
type limits struct {
	chunks [maxNumbers / chunkSize]atomic.Pointer[chunk]
	recent [64]atomic.Pointer[entry] // by hash

	mu     sync.Mutex // guards the fields below, and writes to chunks
	byName map[named]*entry
	next   uint64   // the lowest number that was never given
	free   []uint64 // numbers below next that are free

	crowded atomic.Bool // a limit got no number since the last step of reclaim
	round   reclaiming
}

const chunkSize = 1 << 8

type chunk [chunkSize]atomic.Pointer[entry]

// A named limit is a limit of one family of keys. Families have numbers of their own, so that
// [Store.ClearFamilies] finds the slots of a family without their keys.
type named struct {
	limit  bucket.Limit
	family string // see [store.Family]
}

// An entry is a named limit and its number. Only its mark changes.
type entry struct {
	named
	gain   bucket.Tokens // of a virtual state in a microsecond; 1 for the zero limit
	first  int64         // of a sliding window: the index of the one before the store began
	number uint64
	mark   atomic.Uint32
}

// The marks of an entry. A lookup of the number marks it used. A round of
// reclaim makes it idle first and free at last, unless it was used meanwhile.
const (
	idle = iota
	used
	free
)

// touch marks e used. It reports false where e has lost its number.
func (e *entry) touch() bool {
	for {
		switch e.mark.Load() {
		case used:
			return true
		case free:
			return false
		}
		if e.mark.CompareAndSwap(idle, used) {
			return true
		}
	}
}

// init gives the zero limit the number 0, for good. Slots whose bucket was reset have it.
func (t *limits) init(base bucket.Instant) {
	t.byName = map[named]*entry{}
	t.add(named{}, base)
}

// entry returns the limit that a slot's tag names.
func (s *Store) entry(tag uint64) *entry {
	return s.limits.chunks[uint8(tag>>8)].Load()[uint8(tag)].Load()
}

// number returns the entry of l for a family, or nil where all numbers are taken. The caller
// holds the mutex of the shard whose slot will name it, and keeps it until it does.
func (s *Store) number(l *bucket.Limit, family string) *entry {
	n, p := l.Refill()
	mixed := uint64(n)*0x9e3779b97f4a7c15 ^ uint64(p)*0xff51afd7ed558ccd ^ uint64(l.Capacity())*0xc4ceb9fe1a85ec53
	recent := &s.limits.recent[mixed>>58]
	if e := recent.Load(); e != nil && e.limit.Same(l) && e.family == family && e.touch() {
		return e
	}
	name := named{l.For(""), family}
	s.limits.mu.Lock()
	defer s.limits.mu.Unlock()
	e := s.limits.byName[name]
	if e == nil {
		name.family = strings.Clone(family) // which may be part of something large
		e = s.limits.add(name, s.base)
	}
	if e == nil {
		s.limits.crowded.Store(true)
		return nil
	}
	e.touch()
	recent.Store(e)
	return e
}

// add gives a limit a number, where there is one. The caller holds the mutex.
func (t *limits) add(name named, base bucket.Instant) *entry {
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
	e := &entry{named: name, gain: max(n, 1), first: int64(base)/max(p, 1) - 1, number: number}
	e.mark.Store(used)
	in := &t.chunks[number/chunkSize]
	if in.Load() == nil {
		in.Store(new(chunk))
	}
	in.Load()[number%chunkSize].Store(e)
	t.byName[name] = e
	return e
}

// reclaiming is a round of taking numbers back, in short steps.
type reclaiming struct {
	mu   sync.Mutex // guards the fields below; locked before a shard's
	step int
	seen []uint64 // a bit for each number that a slot names
}

// reclaim does one step of a round, if a limit got no number lately. A round makes
// all marks idle, then looks at the slots of each shard, and then takes back the
// numbers that are idle still and that no slot names.
//
// A number that was looked up before its mark became idle was looked up under the
// mutex of a shard, which the round locks later: by then the slot names it.
//
// The caller holds no mutex. A step takes some microseconds, which callers that make up
// limits pay for.
func (s *Store) reclaim() {
	r := &s.limits.round
	if !s.limits.crowded.Load() || !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	s.limits.crowded.Store(false)
	chunks := len(s.limits.chunks)
	switch at := r.step; {
	case at < chunks:
		if at == 0 {
			r.seen = make([]uint64, maxNumbers/64)
		}
		s.limits.idle(at)
	case at < chunks+len(s.shards):
		r.look(&s.shards[at-chunks])
	default:
		s.limits.takeBack(at - chunks - len(s.shards))
	}
	if r.step++; r.step == 2*chunks+len(s.shards) {
		r.step, r.seen = 0, nil
	}
}

// idle makes the marks of a chunk idle.
func (t *limits) idle(at int) {
	if c := t.chunks[at].Load(); c != nil {
		for i := range c {
			if e := c[i].Load(); e != nil && e.number != 0 {
				e.mark.CompareAndSwap(used, idle)
			}
		}
	}
}

// look marks the numbers that the slots of a shard name.
func (r *reclaiming) look(sh *shard) {
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

// takeBack frees the numbers of a chunk that are idle and not seen.
func (t *limits) takeBack(at int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.chunks[at].Load()
	if c == nil {
		return
	}
	for i := range c {
		e := c[i].Load()
		if e != nil && t.round.seen[e.number/64]&(1<<(e.number%64)) == 0 && e.mark.CompareAndSwap(idle, free) {
			delete(t.byName, e.named)
			t.free = append(t.free, e.number)
		}
	}
}
