// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/metehq/mete/bucket"
)

// maxCopied bounds the entries of sliding logs that are copied per hold of a shard's mutex: 128 KiB, about the
// size of its table. findCost is the cost of finding a log, in entries.
const (
	maxCopied = 8 << 10
	findCost  = 32
)

// A shardCopy is a copy of a shard's buckets. Its memory is reused for the next shard.
type shardCopy struct {
	slots      []slotCopy // slots without a side row
	sideHashes []hash
	rows       []rowCopy
	evictedAt  bucket.Instant
}

// A slotCopy is a copy of a slot, its second word and its limit.
type slotCopy struct {
	slot
	at    uint64
	entry *entry
}

// A rowCopy is a copy of a row that is, or recently was, a side row.
type rowCopy struct {
	hash hash
	sideRow
}

// copySlots copies the shard's slots and the hashes of its side rows. It holds the shard's mutex for about ten
// microseconds.
func (c *shardCopy) copySlots(s *Store, sh *shard) {
	c.slots, c.sideHashes = c.slots[:0], c.sideHashes[:0]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	c.evictedAt = sh.evictedAt
	t := sh.table.Load()
	c.slots = slices.Grow(c.slots, t.used)
	for i := range t.slots {
		sl := &t.slots[i]
		if atomic.LoadUint64(&sl.word) == 0 {
			continue
		}
		if now := s.copySlot(t, sl); now.word&hasSideRow != 0 {
			c.sideHashes = append(c.sideHashes, now.hash())
		} else {
			c.slots = append(c.slots, now)
		}
	}
}

// copySideRows copies some of the remaining side rows, and reports whether there were any. It holds the shard's
// mutex for less than a tenth of a millisecond. Rows that were evicted since copySlots were full.
func (c *shardCopy) copySideRows(s *Store, sh *shard) bool {
	c.rows = c.rows[:0]
	if len(c.sideHashes) == 0 {
		return false
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	copied := 0
	for len(c.sideHashes) > 0 && copied < maxCopied {
		h := c.sideHashes[len(c.sideHashes)-1]
		c.sideHashes = c.sideHashes[:len(c.sideHashes)-1]
		copied += findCost
		t := sh.table.Load()
		found, _ := t.find(h)
		if found == nil {
			continue
		}
		sl := s.copySlot(t, found)
		if sl.word&hasSideRow == 0 {
			state := s.decodeCopy(&sl, s.instant())
			c.rows = append(c.rows, rowCopy{h, sideRow{bucket.Row{{Limit: sl.entry.limit, State: state}}, sl.entry.family}})
			continue
		}
		kept := sh.sideRows[h]
		row := slices.Clone(kept.row)
		for i := range row {
			if log := row[i].State.Log; log != nil {
				row[i].State.Log = bucket.NewLog(slices.Clone(log.Entries()))
				copied += len(log.Entries())
			}
		}
		c.rows = append(c.rows, rowCopy{h, sideRow{row, kept.family}})
	}
	return true
}

// decodeCopy returns the state of a copied slot. The caller read now after the copy.
func (s *Store) decodeCopy(sl *slotCopy, now bucket.Instant) bucket.State {
	at := sl.at
	if s.steady && sl.word&virtual != 0 {
		at = uint64(now) // see secondWord
	}
	return s.decode(sl.word, at, sl.entry)
}

// copySlot returns a consistent copy of a slot of t. The caller holds the shard's mutex, so only lock-free
// takes can change the slot during the copy.
func (s *Store) copySlot(t *table, sl *slot) slotCopy {
	for {
		word := atomic.LoadUint64(&sl.word)
		if word&busy != 0 {
			runtime.Gosched() // see lock
			continue
		}
		at := s.secondWord(t, sl, word, 0)
		if atomic.LoadUint64(&sl.word) == word {
			copied := slot{word: word, h0: atomic.LoadUint64(&sl.h0), tag: atomic.LoadUint64(&sl.tag)}
			return slotCopy{slot: copied, at: at, entry: s.entry(copied.tag)}
		}
	}
}
