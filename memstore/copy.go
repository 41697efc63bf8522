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
	slots  []slotCopy // without those whose rows are kept aside
	aside  []hash
	rows   []rowCopy
	forgot bucket.Instant
}

// A slotCopy is a slot, its second word and the limit that it named when it was copied.
type slotCopy struct {
	slot
	at    uint64
	entry *entry
}

// A rowCopy is a row that is kept aside, or was a moment ago.
type rowCopy struct {
	hash hash
	asideRow
}

// read copies the shard's slots, and the hashes of the rows that are kept aside. Takes that
// need the shard's mutex wait meanwhile: for some ten microseconds.
func (c *shardCopy) read(s *Store, sh *shard) {
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
		if now := s.copySlot(t, sl); now.word&aside != 0 {
			c.aside = append(c.aside, now.hash())
		} else {
			c.slots = append(c.slots, now)
		}
	}
}

// readAside copies rows that are kept aside, some at a time: others wait for
// less than a tenth of a millisecond. It is false when there are no more. Those
// that have been forgotten since were full.
func (c *shardCopy) readAside(s *Store, sh *shard) bool {
	c.rows = c.rows[:0]
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
		t := sh.table.Load()
		found, _ := t.find(h)
		if found == nil {
			continue
		}
		sl := s.copySlot(t, found)
		if sl.word&aside == 0 {
			state := s.decodeCopy(&sl, s.instant())
			c.rows = append(c.rows, rowCopy{h, asideRow{bucket.Row{{Limit: sl.entry.limit, State: state}}, sl.entry.family}})
			continue
		}
		kept := sh.aside[h]
		row := slices.Clone(kept.row)
		for i := range row {
			if log := row[i].State.Log; log != nil {
				row[i].State.Log = bucket.NewLog(slices.Clone(log.Entries()))
				copied += len(log.Entries())
			}
		}
		c.rows = append(c.rows, rowCopy{h, asideRow{row, kept.family}})
	}
	return true
}

// decodeCopy returns the state of a copied slot. Now was read since.
func (s *Store) decodeCopy(sl *slotCopy, now bucket.Instant) bucket.State {
	at := sl.at
	if s.steady && sl.word&virtual != 0 {
		at = uint64(now) // see second
	}
	return s.decode(sl.word, at, sl.entry)
}

// copySlot returns a slot of t as it was at one instant. The caller holds the shard's
// mutex, so that nothing but takes without it can change the slot meanwhile.
func (s *Store) copySlot(t *table, sl *slot) slotCopy {
	for {
		word := atomic.LoadUint64(&sl.word)
		if word&busy != 0 {
			runtime.Gosched() // see lock
			continue
		}
		at := s.second(t, sl, word, 0)
		if atomic.LoadUint64(&sl.word) == word {
			now := slot{word: word, h0: atomic.LoadUint64(&sl.h0), tag: atomic.LoadUint64(&sl.tag)}
			return slotCopy{slot: now, at: at, entry: s.entry(now.tag)}
		}
	}
}
