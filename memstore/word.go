// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"math"
	"math/bits"
	"runtime"
	"sync/atomic"

	"github.com/metehq/mete/bucket"
)

// A slot holds one bucket. All fields are read and written atomically once the
// slot's table is published; zero is an empty slot.
//
// What a continuous bucket misses shrinks by n every microsecond, so
//
//	virtual = (AsOf − base)·n + Spent
//
// stays the same while it refills: it is the state in one number, and a take
// adds to it. It lives in word, beside a generation and lock bits, so one
// compare-and-swap commits a take, and fails if anything else has happened to
// the slot since word was read.
//
// AsOf itself is needed only for a clock that steps back, which a [Config] may
// bring. It stands in a second word: see [table.at]. Under the process's own clock no
// virtual state has one. AsOf is raised before word is swapped. A reader may therefore
// see an instant that a take in progress has raised, with the word of before: that is
// the same bucket, refilled a little further.
//
// All other states take both words: see encode. Whoever changes them marks the
// slot busy for the few instructions that takes, and counts its generation on. A
// reader of both words who finds the first unchanged has seen one state.
type slot struct {
	word uint64
	h0   uint64 // the key's hash, and
	tag  uint64 // the high bits of its second half, above the number of the limit
}

// numberBits of a tag are the number of the bucket's limit: see limits.
const (
	numberBits = 16
	numberMask = 1<<numberBits - 1
)

const (
	payloadBits = 53
	payloadMask = 1<<payloadBits - 1

	virtual = 1 << 53 // payload is the virtual state
	aside   = 1 << 54 // the row is in the shard's map; the second word is when it is full

	// locked: someone who holds the shard's mutex changes the slot.
	// busy: someone who does not hold it changes the slot, and waits for nothing.
	locked = 1 << 55
	busy   = 1 << 56

	generation     = 1 << 57 // counts whatever happens to a slot but plain takes
	generationMask = 0x7f << 57

	// dropped marks buckets that did not make it into a new table. Its generation
	// is 0, which no slot in use has.
	dropped = locked

	// plainAt marks a second word that holds what encode returns. It keeps a take in
	// progress from raising the instant of a slot whose word is not virtual any more:
	// its compare-and-swap fails.
	plainAt = 1 << 63
)

// The layout of a sliding window. The tokens spent in it are in windowBits of the
// payload. The tokens spent in the one before are in the rest of the payload and in the
// high bits of the second word. The indexBits of the second word count the windows from
// base to its start, beginning with one before base.
const (
	windowBits = 41
	lowBits    = payloadBits - windowBits
	lowMask    = 1<<lowBits - 1
	indexBits  = 63 - (windowBits - lowBits)
	indexMask  = 1<<indexBits - 1
)

// bump returns w's generation, counted on; never 0.
func bump(w uint64) uint64 {
	if g := w&generationMask + generation; g != 0 {
		return g
	}
	return generation
}

// elapsed returns (at − base)·n, at most 2^63 − 1.
func (s *Store) elapsed(at bucket.Instant, n bucket.Tokens) (product uint64, ok bool) {
	if at < s.base {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(at-s.base), uint64(n))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64, false
	}
	return lo, true
}

// decode returns the state that word and at hold, of a bucket of e's limit.
func (s *Store) decode(word, at uint64, e *entry) (state bucket.State) {
	s.decodeTo(&state, word, at, e)
	return state
}

// decodeTo is decode for the hot paths. What is written by words and then copied
// in larger pieces stalls the processor.
func (s *Store) decodeTo(to *bucket.State, word, at uint64, e *entry) {
	_, p := e.limit.Refill()
	if word&virtual != 0 {
		refilled, _ := s.elapsed(bucket.Instant(at), e.gain)
		to.Spent, to.AsOf, to.Unit = max(int64(word&payloadMask)-int64(refilled), 0), bucket.Instant(at), p
		return
	}
	at &^= plainAt
	if e.limit.Algorithm() == bucket.SlidingWindow {
		prev := int64(at>>indexBits<<lowBits | word&lowMask)
		to.Spent, to.Prev = int64(word&payloadMask>>lowBits)+prev, prev
		to.AsOf, to.Unit = bucket.Instant((e.first+int64(at&indexMask))*p), -p
		return
	}
	to.Spent, to.AsOf, to.Unit = int64(word&payloadMask), bucket.Instant(at), e.limit.Unit()
}

// encode is the inverse of decode, without generation and locks. It is false
// where the state must be put aside.
func (s *Store) encode(state *bucket.State, e *entry) (word, at uint64, ok bool) {
	_, p := e.limit.Refill()
	switch e.limit.Algorithm() {
	case bucket.Continuous:
		asOf := state.AsOf
		if s.steady && state.Spent == 0 {
			asOf = max(asOf, s.base) // no take of this store is earlier
		}
		if s.steady && asOf <= s.ahead && asOf > s.instant() {
			break // a virtual state would lose its instant, which is to come
		}
		if refilled, ok := s.elapsed(asOf, e.gain); ok && refilled+uint64(state.Spent) <= payloadMask {
			return virtual | (refilled + uint64(state.Spent)), uint64(asOf), true
		}
	case bucket.SlidingWindow:
		index := int64(state.AsOf)/p - e.first
		cur, prev := uint64(state.Spent-state.Prev), uint64(state.Prev)
		ok = index >= 0 && index <= indexMask && cur>>windowBits == 0 && prev>>windowBits == 0
		return cur<<lowBits | prev&lowMask, plainAt | prev>>lowBits<<indexBits | uint64(index)&indexMask, ok
	case bucket.SlidingLog:
		// An empty log is a full bucket.
		return 0, plainAt | uint64(state.AsOf), state.Log == nil
	}
	return uint64(state.Spent), plainAt | uint64(state.AsOf), state.AsOf >= 0
}

// load returns the row of the slot, as it holds for key, in the caller's memory. An
// account whose limit differs from l in nothing but the start of a key has l.
//
// The caller holds the shard's mutex, has locked the slot and then read now.
func (s *Store) load(into *[bucket.MaxAccounts]bucket.Account, sl *slot, key string, l *bucket.Limit, now bucket.Instant) bucket.Row {
	word, n := atomic.LoadUint64(&sl.word), 1
	h := sl.hash()
	sh := s.shard(h)
	if word&aside != 0 {
		n = copy(into[:], sh.aside[h].row)
	} else {
		e := s.entry(atomic.LoadUint64(&sl.tag))
		into[0] = bucket.Account{Limit: e.limit, State: s.decode(word, s.second(sh.table.Load(), sl, word, now), e)}
	}
	common := l.For("")
	for i := range into[:n] {
		a := &into[i]
		if a.Limit == common {
			a.Limit = *l
		} else {
			a.Limit = a.Limit.For(key)
		}
	}
	return into[:n]
}

// second returns the second word of a slot, for decode. A virtual state under a clock
// that never steps back has none: it returns now.
func (s *Store) second(t *table, sl *slot, word uint64, now bucket.Instant) uint64 {
	if s.steady && word&virtual != 0 {
		return uint64(now)
	}
	return atomic.LoadUint64(t.at(sl))
}

// save makes the slot h's, whose key is of the family, and writes a row of one account. That
// unlocks the slot, unless lock is locked. The caller holds the shard's mutex.
func (s *Store) save(sl *slot, h hash, family string, l *bucket.Limit, state *bucket.State, lock uint64) {
	if state.Log == nil {
		if e := s.number(l, family); e != nil {
			if word, at, ok := s.encode(state, e); ok {
				sh := s.shard(h)
				sh.drop(sl, atomic.LoadUint64(&sl.word))
				sh.table.Load().write(sl, h, word, at, e.number, lock)
				return
			}
		}
	}
	s.saveRow(sl, h, family, bucket.Row{{Limit: *l, State: *state}}, lock)
}

// saveRow is save for rows that do not fit a slot.
func (s *Store) saveRow(sl *slot, h hash, family string, row bucket.Row, lock uint64) {
	sh := s.shard(h)
	sh.table.Load().write(sl, h, aside, sh.put(h, family, row), 0, lock)
}

// write makes the slot h's and fills it in. The caller holds the shard's mutex.
func (t *table) write(sl *slot, h hash, word, at, number, lock uint64) {
	if at&plainAt != 0 && t.ats == nil {
		t.ats = make([]uint64, len(t.slots))
	}
	if t.ats != nil {
		atomic.StoreUint64(t.at(sl), at)
	}
	tag := h.h1&^numberMask | number
	old := atomic.LoadUint64(&sl.word)
	if old == 0 {
		// Nobody looks behind an empty word.
		sl.h0, sl.tag = h.h0, tag
	} else {
		atomic.StoreUint64(&sl.h0, h.h0)
		atomic.StoreUint64(&sl.tag, tag)
	}
	atomic.StoreUint64(&sl.word, word|bump(old)|lock)
}

// lock locks a slot whose shard's mutex the caller holds, and returns its word. Nobody
// else can hold the lock then, but takes may still change the word.
func (sl *slot) lock() uint64 {
	for {
		switch w := atomic.LoadUint64(&sl.word); {
		case w&locked != 0:
			return w
		case w&busy != 0:
			runtime.Gosched() // for a few instructions, unless its thread was suspended
		case atomic.CompareAndSwapUint64(&sl.word, w, w|locked):
			return w | locked
		}
	}
}

// unlock leaves the slot as it is.
func (sl *slot) unlock() {
	if w := atomic.LoadUint64(&sl.word); w&locked != 0 {
		atomic.StoreUint64(&sl.word, w&^(locked|generationMask)|bump(w))
	}
}

// holds reports whether the slot is h's, for as long as its word does not change.
func (sl *slot) holds(h hash) bool {
	return atomic.LoadUint64(&sl.h0) == h.h0 && (atomic.LoadUint64(&sl.tag)^h.h1)>>numberBits == 0
}

// hash returns the hash that the slot keeps of its key's.
func (sl *slot) hash() hash {
	return hash{atomic.LoadUint64(&sl.h0), atomic.LoadUint64(&sl.tag) &^ numberMask}
}
