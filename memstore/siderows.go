// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/bucket"
)

// Side rows are rows that do not fit a slot. They hold keys with accounts of several limits, sliding logs, and
// limits without a number. The few windows and intervals that are years away from the store's start are side rows,
// too. They are in a map of their shard and guarded by its mutex. Like the limits of slots, their limits have no
// start of a key. Buckets with histories are side rows: those with open holds, and those with takes that await their
// cancellation.

// A sideRow is a side row and the family of its key.
type sideRow struct {
	row    bucket.Row
	family string // of the key: see [store.Family]
}

// putSideRow stores h's side row and returns the second word of its slot: the instant at which the row is full.
func (sh *shard) putSideRow(h hash, family string, row bucket.Row) (at uint64) {
	h = h.withoutNumber()
	if sh.sideRows == nil {
		sh.sideRows = map[hash]sideRow{}
	}
	old := sh.sideRows[h]
	kept := append(old.row[:0], row...)
	for i := range kept {
		kept[i].Limit = kept[i].Limit.ForKey("")
	}
	if old.family != family {
		family = strings.Clone(family) // the string may be part of a large one
	} else {
		family = old.family
	}
	sh.sideRows[h] = sideRow{kept, family}
	return fullAt(kept)
}

// fullAt returns the second word of a slot. It is the instant at which all accounts of a row are full, and all of its
// holds have expired. Without the start of the key it may be one interval late.
func fullAt(row bucket.Row) uint64 {
	full := row.HeldUntil()
	for i := range row {
		a := &row[i]
		full = max(full, a.State.AsOf.Add(a.Limit.Peek(a.State, a.State.AsOf, 0, 0).FullAfter()))
	}
	return plainAt | uint64(full)
}

func (sh *shard) dropSideRow(sl *slot, word uint64) {
	if word&hasSideRow == 0 {
		return
	}
	if delete(sh.sideRows, sl.hash()); len(sh.sideRows) == 0 {
		sh.sideRows = nil // maps do not shrink
	}
}

// takeSideRow decides about a sliding log without other accounts in its row. It reports false for any other row.
func (s *Store) takeSideRow(h hash, l *bucket.Limit, cost bucket.Tokens, maxWait time.Duration) (bucket.Verdict, bucket.Instant, bool) {
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	t := sh.table.Load()
	sl, word := t.find(h)
	if sl == nil || word&hasSideRow == 0 {
		return bucket.Verdict{}, 0, false
	}
	row := sh.sideRows[sl.hash()].row
	if len(row) != 1 || row[0].Limit != *l || row[0].State.History != nil || l.Algorithm() != bucket.AlgorithmSlidingLog {
		return bucket.Verdict{}, 0, false
	}
	now := s.instant()
	v := l.SpendOn(&row[0].State, now, cost, maxWait)
	if v.Allowed() {
		atomic.StoreUint64(t.secondWord(sl), fullAt(row))
	}
	return v, now, true
}
