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
// bring; under the process's own it may lag behind. It is raised before word is
// swapped. A reader may therefore see an instant that a take in progress has
// raised, with the word of before: that is the same bucket, refilled a little
// further.
//
// All other states take both words: see encode. Whoever changes them marks the
// slot busy for the few instructions that takes, and counts its generation on. A
// reader of both words who finds the first unchanged has seen one state.
type slot struct {
	word uint64
	at   uint64 // AsOf in µs, and virtual; or what encode says, with plainAt set
	h0   uint64 // the key's hash, and
	tag  uint64 // the high bits of its second half, above the number of the shape
}

// shapeBits of a tag number the shape that word counts in.
const (
	shapeBits = 20
	shapeMask = 1<<shapeBits - 1
)

const (
	payloadBits = 53
	payloadMask = 1<<payloadBits - 1

	virtual = 1 << 53 // payload is the virtual state
	aside   = 1 << 54 // the state is in the shard's map; at says when it is full

	// locked: someone who holds the shard's mutex changes the slot.
	// busy: someone who does not hold it changes the slot, and waits for nothing.
	locked = 1 << 55
	busy   = 1 << 56

	generation     = 1 << 57 // counts whatever happens to a slot but plain takes
	generationMask = 0x7f << 57

	// dropped marks buckets that did not make it into a new table. Its generation
	// is 0, which no slot in use has.
	dropped = locked

	// plainAt keeps a take in progress from raising the instant of a slot whose
	// word is not virtual any more: its compare-and-swap fails.
	plainAt = 1 << 63
)

// The layout of a sliding window: what was spent in it in windowBits of the
// payload, what was spent in the one before in the rest of the payload and in
// the high bits of at, and how many windows after base it begins, from one
// before it on, in indexBits of at.
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

// decode returns the state that word and at hold, under a limit of that shape.
func (s *Store) decode(word, at uint64, shape *shape) (state bucket.State) {
	s.decodeTo(&state, word, at, shape)
	return state
}

// decodeTo is decode for the hot paths. What is written by words and then copied
// in larger pieces stalls the processor.
func (s *Store) decodeTo(to *bucket.State, word, at uint64, shape *shape) {
	n, p := shape.Refill()
	if word&virtual != 0 {
		refilled, _ := s.elapsed(bucket.Instant(at), n)
		to.Spent, to.AsOf, to.Unit = max(int64(word&payloadMask)-int64(refilled), 0), bucket.Instant(at), p
		return
	}
	at &^= plainAt
	if shape.Algorithm() == bucket.SlidingWindow {
		prev := int64(at>>indexBits<<lowBits | word&lowMask)
		to.Spent, to.Prev = int64(word&payloadMask>>lowBits)+prev, prev
		to.AsOf, to.Unit = bucket.Instant((shape.first+int64(at&indexMask))*p), -p
		return
	}
	to.Spent, to.AsOf, to.Unit = int64(word&payloadMask), bucket.Instant(at), shape.Unit()
}

// encode is the inverse of decode, without generation and locks. It is false
// where the state must be put aside.
func (s *Store) encode(state *bucket.State, shape *shape) (word, at uint64, ok bool) {
	n, p := shape.Refill()
	switch shape.Algorithm() {
	case bucket.Continuous:
		if refilled, ok := s.elapsed(state.AsOf, n); ok && refilled+uint64(state.Spent) <= payloadMask {
			return virtual | (refilled + uint64(state.Spent)), uint64(state.AsOf), true
		}
	case bucket.SlidingWindow:
		index := int64(state.AsOf)/p - shape.first
		cur, prev := uint64(state.Spent-state.Prev), uint64(state.Prev)
		ok = index >= 0 && index <= indexMask && cur>>windowBits == 0 && prev>>windowBits == 0
		return cur<<lowBits | prev&lowMask, plainAt | prev>>lowBits<<indexBits | uint64(index)&indexMask, ok
	case bucket.SlidingLog:
		// An empty log is a full bucket.
		return 0, plainAt | uint64(state.AsOf), state.Log == nil
	}
	return uint64(state.Spent), plainAt | uint64(state.AsOf), state.AsOf >= 0
}

// load returns the slot's state under its own shape. The caller has locked it and
// then, where the clock is the process's, read now: a state whose instant lags
// behind holds more than is missing, which another rate would misread.
func (s *Store) load(sh *shard, sl *slot, now bucket.Instant) bucket.State {
	word, at := atomic.LoadUint64(&sl.word), atomic.LoadUint64(&sl.at)
	if word&aside != 0 {
		return *sh.aside[sl.hash()]
	}
	if s.now == nil && word&virtual != 0 {
		at = max(at, uint64(now))
	}
	return s.decode(word, at, s.shape(atomic.LoadUint64(&sl.tag)))
}

// save makes the slot h's and writes its state, under the limit whose shape has
// that number. That unlocks the slot, unless lock is locked. The caller holds the
// shard's mutex.
func (s *Store) save(sl *slot, h hash, state bucket.State, shape, lock uint64) {
	word, at, ok := s.encode(&state, s.shape(shape))
	old, sh := atomic.LoadUint64(&sl.word), s.shard(h)
	if !ok {
		word, at = aside, sh.put(h, &state, &s.shape(shape).Limit)
	} else {
		sh.drop(sl, old)
	}
	tag := h.h1&^shapeMask | shape
	if old == 0 {
		// Nobody looks behind an empty word.
		sl.at, sl.h0, sl.tag = at, h.h0, tag
	} else {
		atomic.StoreUint64(&sl.at, at)
		atomic.StoreUint64(&sl.h0, h.h0)
		atomic.StoreUint64(&sl.tag, tag)
	}
	atomic.StoreUint64(&sl.word, word|bump(old)|lock)
}

// lock locks a slot whose shard's mutex the caller holds. Nobody else can hold
// the lock then, but takes may still change the word.
func (sl *slot) lock() {
	for {
		switch w := atomic.LoadUint64(&sl.word); {
		case w&locked != 0:
			return
		case w&busy != 0:
			runtime.Gosched() // for a few instructions, unless its thread was suspended
		case atomic.CompareAndSwapUint64(&sl.word, w, w|locked):
			return
		}
	}
}

// unlock leaves the slot as it is.
func (sl *slot) unlock() {
	if w := atomic.LoadUint64(&sl.word); w&locked != 0 {
		atomic.StoreUint64(&sl.word, w&^(locked|generationMask)|bump(w))
	}
}

// hash returns the hash that the slot keeps of its key's.
func (sl *slot) hash() hash {
	return hash{atomic.LoadUint64(&sl.h0), atomic.LoadUint64(&sl.tag) &^ shapeMask}
}
