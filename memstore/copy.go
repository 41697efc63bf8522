// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/metehq/mete/bucket"
)

// mostCopied bounds the entries of sliding logs that are copied while a shard's
// mutex is held: 128 KiB, about as much as its table. Finding a log counts as
// much as copying so many entries.
const (
	mostCopied = 8 << 10
	finding    = 32
)

// A shardCopy is a shard, as its buckets were while it was copied. Its memory is
// used again for the next one.
type shardCopy struct {
	slots  []slot // without those whose states were put aside
	aside  []hash
	states []asideCopy
	forgot bucket.Instant
}

// An asideCopy is a state that was put aside, or had been a moment ago.
type asideCopy struct {
	hash  hash
	shape uint64
	state bucket.State
}

// read copies the shard's slots, and the hashes of what was put aside. Takes that
// need the shard's mutex wait meanwhile: for some ten microseconds.
func (c *shardCopy) read(sh *shard) {
	c.slots, c.aside = c.slots[:0], c.aside[:0]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	c.forgot = sh.forgot
	t := sh.table.Load()
	c.slots = slices.Grow(c.slots, t.used)
	for i := range t.slots {
		sl := &t.slots[i]
		if atomic.LoadUint64(&sl.word) == 0 {
			continue
		}
		if now := sl.copy(); now.word&aside != 0 {
			c.aside = append(c.aside, now.hash())
		} else {
			c.slots = append(c.slots, now)
		}
	}
}

// readAside copies states that were put aside, some at a time: others wait for
// less than a tenth of a millisecond. It is false when there are no more. Those
// that have been forgotten since were full.
func (c *shardCopy) readAside(s *Store, sh *shard) bool {
	c.states = c.states[:0]
	if len(c.aside) == 0 {
		return false
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	copied := 0
	for len(c.aside) > 0 && copied < mostCopied {
		h := c.aside[len(c.aside)-1]
		c.aside = c.aside[:len(c.aside)-1]
		copied += finding
		found, _ := sh.table.Load().find(h)
		if found == nil {
			continue
		}
		sl := found.copy()
		var state bucket.State
		if sl.word&aside != 0 {
			state = *sh.aside[h]
			if state.Log != nil {
				state.Log = bucket.NewLog(slices.Clone(state.Log.Entries()))
				copied += len(state.Log.Entries())
			}
		} else {
			state = s.decodeCopy(&sl, s.instant())
		}
		c.states = append(c.states, asideCopy{h, sl.tag & shapeMask, state})
	}
	return true
}

// decodeCopy returns the state of a copied slot. Now was read since.
func (s *Store) decodeCopy(sl *slot, now bucket.Instant) bucket.State {
	at := sl.at
	if s.now == nil && sl.word&virtual != 0 {
		at = max(at, uint64(now)) // see load
	}
	return s.decode(sl.word, at, s.shape(sl.tag))
}

// copy returns the slot as it was at one instant. The caller holds the shard's
// mutex, so that nothing but takes without it can change the slot meanwhile.
func (sl *slot) copy() slot {
	for {
		word := atomic.LoadUint64(&sl.word)
		if word&busy != 0 {
			runtime.Gosched() // see lock
			continue
		}
		at := atomic.LoadUint64(&sl.at)
		if atomic.LoadUint64(&sl.word) == word {
			return slot{word: word, at: at, h0: atomic.LoadUint64(&sl.h0), tag: atomic.LoadUint64(&sl.tag)}
		}
	}
}
