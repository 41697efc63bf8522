// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"math"
	"math/bits"
	"runtime"
	"sync/atomic"

	"github.com/metehq/mete/bucket"
)

// A slot holds one bucket. All fields are accessed atomically once the slot's table is published. Zero is an
// empty slot.
//
// The missing amount of a continuous bucket shrinks by n every microsecond, so
//
//	virtual = (AsOf − base)·n + Spent
//
// is constant while the bucket refills. It is the state in one number, and a take adds its cost to it. word
// holds this number, a generation and lock bits. One compare-and-swap therefore commits a take, and fails after
// any other change of the slot.
//
// AsOf itself is needed only for a clock that steps back, which a [Config] may provide. A second word stores it: see
// [table.secondWord]. With the process's own clock, virtual states have no second word. AsOf is raised before word is
// swapped. A reader may combine the new AsOf with the old word: that is the same bucket with a little more refill.
//
// All other states use both words: see encode. A writer marks the slot busy for a few instructions and
// increments its generation. A reader that finds the first word unchanged has read a consistent state.
type slot struct {
	word uint64
	h0   uint64 // the first half of the key's hash
	tag  uint64 // the high bits of the hash's second half, above the number of the limit
}

// The low numberBits of a tag are the number of the bucket's limit: see limits.
const (
	numberBits = 16
	numberMask = 1<<numberBits - 1
)

const (
	payloadBits = 53
	payloadMask = 1<<payloadBits - 1

	virtual    = 1 << 53 // the payload is the virtual state
	hasSideRow = 1 << 54 // the row is in the shard's map; the second word is the instant when it is full

	// locked: the holder of the shard's mutex is changing the slot. busy: a take without the mutex is changing
	// the slot, and waits for nothing.
	locked = 1 << 55
	busy   = 1 << 56

	generation     = 1 << 57 // counts all changes of a slot except plain takes
	generationMask = 0x7f << 57

	// dropped marks buckets that were left out of a new table. Its generation is 0, which no slot in use has.
	dropped = locked

	// plainAt marks a second word written by encode. A concurrent take that expects a virtual slot then fails its
	// compare-and-swap, instead of raising the slot's instant.
	plainAt = 1 << 63
)

// The layout of a sliding window. windowBits of the payload hold the tokens of the current window. The rest of
// the payload and the high bits of the second word hold the tokens of the previous window. The indexBits of the
// second word count the windows from base to the window's start, beginning with the window before base.
const (
	windowBits = 41
	lowBits    = payloadBits - windowBits
	lowMask    = 1<<lowBits - 1
	indexBits  = 63 - (windowBits - lowBits)
	indexMask  = 1<<indexBits - 1
)

// nextGeneration returns the generation after w's. It is never 0.
func nextGeneration(w uint64) uint64 {
	if g := w&generationMask + generation; g != 0 {
		return g
	}
	return generation
}

// refillSinceBase returns (at − base)·n, at most 2^63 − 1.
func (s *Store) refillSinceBase(at bucket.Instant, n bucket.Tokens) (product uint64, ok bool) {
	if at < s.base {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(at-s.base), uint64(n))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64, false
	}
	return lo, true
}

func (s *Store) decode(word, at uint64, e *entry) (state bucket.State) {
	s.decodeTo(&state, word, at, e)
	return state
}

// decodeTo is decode for the hot paths. It avoids reading recent writes in larger pieces, which stalls the
// processor.
func (s *Store) decodeTo(to *bucket.State, word, at uint64, e *entry) {
	_, p := e.limit.Refill()
	if word&virtual != 0 {
		refilled, _ := s.refillSinceBase(bucket.Instant(at), e.gain)
		to.Spent, to.AsOf, to.Unit = max(int64(word&payloadMask)-int64(refilled), 0), bucket.Instant(at), p
		return
	}
	at &^= plainAt
	if e.limit.Algorithm() == bucket.AlgorithmSlidingWindow {
		prev := int64(at>>indexBits<<lowBits | word&lowMask)
		to.Spent, to.Prev = int64(word&payloadMask>>lowBits)+prev, prev
		to.AsOf, to.Unit = bucket.Instant((e.first+int64(at&indexMask))*p), -p
		return
	}
	to.Spent, to.AsOf, to.Unit = int64(word&payloadMask), bucket.Instant(at), e.limit.Unit()
}

// encode is the inverse of decode, without generation and locks. It returns false if the state needs a side row.
func (s *Store) encode(state *bucket.State, e *entry) (word, at uint64, ok bool) {
	_, p := e.limit.Refill()
	switch e.limit.Algorithm() {
	case bucket.AlgorithmContinuous:
		asOf := state.AsOf
		if s.steady && state.Spent == 0 {
			asOf = max(asOf, s.base) // no take of this store happens earlier
		}
		if s.steady && asOf <= s.latestRestored && asOf > s.instant() {
			break // a virtual state would lose its future instant
		}
		if refilled, ok := s.refillSinceBase(asOf, e.gain); ok && refilled+uint64(state.Spent) <= payloadMask {
			return virtual | (refilled + uint64(state.Spent)), uint64(asOf), true
		}
	case bucket.AlgorithmSlidingWindow:
		index := int64(state.AsOf)/p - e.first
		cur, prev := uint64(state.Spent-state.Prev), uint64(state.Prev)
		ok = index >= 0 && index <= indexMask && cur>>windowBits == 0 && prev>>windowBits == 0
		return cur<<lowBits | prev&lowMask, plainAt | prev>>lowBits<<indexBits | uint64(index)&indexMask, ok
	case bucket.AlgorithmSlidingLog:
		// An empty log is a full bucket.
		return 0, plainAt | uint64(state.AsOf), state.Log == nil
	}
	return uint64(state.Spent), plainAt | uint64(state.AsOf), state.AsOf >= 0
}

// load returns the row of the slot for key in the caller's memory. If a limit differs from l only in the start of a
// key, the row gets l. The caller holds the shard's mutex, has locked the slot, and has read now afterwards.
func (s *Store) load(into *[bucket.MaxAccounts]bucket.Account, sl *slot, key string, l *bucket.Limit, now bucket.Instant) bucket.Row {
	word, n := atomic.LoadUint64(&sl.word), 1
	h := sl.hash()
	sh := s.shard(h)
	if word&hasSideRow != 0 {
		n = copy(into[:], sh.sideRows[h].row)
	} else {
		e := s.entry(atomic.LoadUint64(&sl.tag))
		into[0] = bucket.Account{Limit: e.limit, State: s.decode(word, s.secondWord(sh.table.Load(), sl, word, now), e)}
	}
	common := l.ForKey("")
	for i := range into[:n] {
		a := &into[i]
		if a.Limit == common {
			a.Limit = *l
		} else {
			a.Limit = a.Limit.ForKey(key)
		}
	}
	return into[:n]
}

// loadCell loads the row of a cell with a locked slot, after the refunds of its expired holds.
func (s *Store) loadCell(c *cell, now bucket.Instant) {
	h, key := c.bucketKey()
	c.row = s.load(&c.accounts, c.slot, key, &c.limit, now)
	if due := c.row.Due(); due == 0 || now < due {
		return
	}
	s.saveRow(c.slot, h, c.family, s.holds.refundExpired(h, c.row, now), locked)
	c.row = s.load(&c.accounts, c.slot, key, &c.limit, now)
}

// secondWord returns the second word of a slot for decode. A virtual state under a steady clock has none: the
// result is now.
func (s *Store) secondWord(t *table, sl *slot, word uint64, now bucket.Instant) uint64 {
	if s.steady && word&virtual != 0 {
		return uint64(now)
	}
	return atomic.LoadUint64(t.secondWord(sl))
}

// save assigns the slot to h and writes a row of one account. It unlocks the slot unless lock is locked. The
// caller holds the shard's mutex.
func (s *Store) save(sl *slot, h hash, family string, l *bucket.Limit, state *bucket.State, lock uint64) {
	if state.Log == nil && state.History == nil {
		if e := s.assignNumber(l, family); e != nil {
			if word, at, ok := s.encode(state, e); ok {
				sh := s.shard(h)
				sh.dropSideRow(sl, atomic.LoadUint64(&sl.word))
				sh.table.Load().write(sl, h, word, at, e.number, lock)
				return
			}
		}
	}
	s.saveRow(sl, h, family, bucket.Row{{Limit: *l, State: *state}}, lock)
}

func (s *Store) saveRow(sl *slot, h hash, family string, row bucket.Row, lock uint64) {
	sh := s.shard(h)
	sh.table.Load().write(sl, h, hasSideRow, sh.putSideRow(h, family, row), 0, lock)
}

// write assigns the slot to h and fills it in. The caller holds the shard's mutex.
func (t *table) write(sl *slot, h hash, word, at, number, lock uint64) {
	if at&plainAt != 0 && t.ats == nil {
		t.ats = make([]uint64, len(t.slots))
	}
	if t.ats != nil {
		atomic.StoreUint64(t.secondWord(sl), at)
	}
	tag := h.h1&^numberMask | number
	old := atomic.LoadUint64(&sl.word)
	if old == 0 {
		// No reader uses the hash of an empty word.
		sl.h0, sl.tag = h.h0, tag
	} else {
		atomic.StoreUint64(&sl.h0, h.h0)
		atomic.StoreUint64(&sl.tag, tag)
	}
	atomic.StoreUint64(&sl.word, word|nextGeneration(old)|lock)
}

// lock locks a slot and returns its word. The caller holds the shard's mutex, so no other caller can hold the
// lock, but takes may still change the word.
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

func (sl *slot) unlock() {
	if w := atomic.LoadUint64(&sl.word); w&locked != 0 {
		atomic.StoreUint64(&sl.word, w&^(locked|generationMask)|nextGeneration(w))
	}
}

// hasHash reports whether the slot belongs to h, as long as its word does not change.
func (sl *slot) hasHash(h hash) bool {
	return atomic.LoadUint64(&sl.h0) == h.h0 && (atomic.LoadUint64(&sl.tag)^h.h1)>>numberBits == 0
}

// hash returns the part of the key's hash that the slot keeps.
func (sl *slot) hash() hash {
	return hash{atomic.LoadUint64(&sl.h0), atomic.LoadUint64(&sl.tag) &^ numberMask}
}
