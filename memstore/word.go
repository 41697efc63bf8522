// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/metehq/mete/bucket"
)

// A slot holds one bucket. All fields are read and written atomically once the
// slot's table is published; zero is an empty slot.
//
// What a bucket misses shrinks by n every microsecond, so
//
//	virtual = (AsOf − base)·n + Spent
//
// stays the same while it refills: it is the state in one number, and a take
// adds to it. It lives in word, beside a generation and a lock bit, so one
// compare-and-swap commits a take, and fails if anything else has happened to
// the slot since word was read.
//
// AsOf itself is needed only for a clock that steps back, which a [Config] may
// bring; under the process's own it may lag behind. It is raised before word is
// swapped. A reader may therefore see an instant that a take in progress has
// raised, with the word of before: that is the same bucket, refilled a little
// further.
type slot struct {
	word uint64
	at   uint64 // AsOf in µs; with plainAt set where word holds Spent itself
	h0   uint64 // the key's hash, and
	tag  uint64 // the high bits of its second half, above the number of the rate
}

// rateBits of a tag number the rate that word counts in.
const (
	rateBits = 20
	rateMask = 1<<rateBits - 1
)

const (
	payloadBits = 54
	payloadMask = 1<<payloadBits - 1

	virtual = 1 << 54 // payload is the virtual state, else it is Spent at AsOf
	locked  = 1 << 55 // someone who holds the shard's mutex changes the slot

	generation     = 1 << 56 // counts whatever happens to a slot but plain takes
	generationMask = 0xff << 56

	// dropped marks buckets that did not make it into a new table. Its generation
	// is 0, which no slot in use has.
	dropped = locked

	// plainAt keeps a take in progress from raising the instant of a slot whose
	// word has become plain meanwhile: its compare-and-swap fails.
	plainAt = 1 << 63

	// virtualMax bounds (AsOf − base)·n, so that with Spent < 2^53 the payload
	// fits. A limit that refills 1,000 thousandths a microsecond gets there in
	// 104 days; its slots are then kept plain, under the shard's lock.
	virtualMax = 1 << 53
)

// bump returns w's generation, counted on; never 0.
func bump(w uint64) uint64 {
	if g := w&generationMask + generation; g != 0 {
		return g
	}
	return generation
}

// elapsed returns (at − base)·n, at most 2^63 − 1, and whether that fits a
// virtual word.
func (s *Store) elapsed(at bucket.Instant, n bucket.Tokens) (uint64, bool) {
	if at < s.base {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(at-s.base), uint64(n))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64, false
	}
	return lo, lo < virtualMax
}

// decode returns the state that word and at hold, under a rate of n every p.
func (s *Store) decode(word, at uint64, n bucket.Tokens, p int64) bucket.State {
	asOf := bucket.Instant(at &^ plainAt)
	spent := int64(word & payloadMask)
	if word&virtual != 0 {
		refilled, _ := s.elapsed(asOf, n)
		spent = max(spent-int64(refilled), 0)
	}
	return bucket.State{Spent: spent, AsOf: asOf, Unit: p}
}

// encode is the inverse of decode, without generation and lock.
func (s *Store) encode(state bucket.State, n bucket.Tokens) (word, at uint64) {
	if refilled, ok := s.elapsed(state.AsOf, n); ok {
		return virtual | (refilled + uint64(state.Spent)), uint64(state.AsOf)
	}
	return uint64(state.Spent), uint64(state.AsOf) | plainAt
}

// load returns the slot's state under its own rate. The caller has locked it and
// then, where the clock is the process's, read now: a state whose instant lags
// behind holds more than is missing, which another rate would misread.
func (s *Store) load(sl *slot, now bucket.Instant) bucket.State {
	r := s.rate(atomic.LoadUint64(&sl.tag))
	word, at := atomic.LoadUint64(&sl.word), atomic.LoadUint64(&sl.at)
	if s.now == nil && word&virtual != 0 {
		at = max(at, uint64(now))
	}
	return s.decode(word, at, r.n, r.p)
}

// save makes the slot h's and writes its state, under the limit whose rate has
// that number. That unlocks the slot, unless lock is locked. The caller holds the
// shard's mutex.
func (s *Store) save(sl *slot, h hash, state bucket.State, rate uint64, l bucket.Limit, lock uint64) {
	n, _ := l.Refill()
	word, at := s.encode(state, n)
	old := atomic.LoadUint64(&sl.word)
	if old == 0 {
		// Nobody looks behind an empty word.
		sl.at, sl.h0, sl.tag = at, h.h0, h.h1&^rateMask|rate
	} else {
		atomic.StoreUint64(&sl.at, at)
		atomic.StoreUint64(&sl.h0, h.h0)
		atomic.StoreUint64(&sl.tag, h.h1&^rateMask|rate)
	}
	atomic.StoreUint64(&sl.word, word|bump(old)|lock)
}

// lock locks a slot whose shard's mutex the caller holds. Nobody else can hold
// the lock then, but takes may still change the word.
func (sl *slot) lock() {
	for {
		w := atomic.LoadUint64(&sl.word)
		if w&locked != 0 || atomic.CompareAndSwapUint64(&sl.word, w, w|locked) {
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
