// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/bucket"
)

// Kept aside, in a map of their shard, are the rows that do not fit a slot: keys with
// accounts of several limits, sliding logs, limits that got no number, and the few
// windows and intervals that lie years away from the start of the store. They are
// read and changed under the shard's mutex. Their limits have the start of no key,
// as those of slots have.

// An asideRow is a row that is kept aside, of a key of one family.
type asideRow struct {
	row    bucket.Row
	family string // see [store.Family]
}

// put keeps h's row aside and returns the second word of its slot: when it is full.
func (sh *shard) put(h hash, family string, row bucket.Row) (at uint64) {
	h.h1 &^= numberMask
	if sh.aside == nil {
		sh.aside = map[hash]asideRow{}
	}
	old := sh.aside[h]
	kept := append(old.row[:0], row...)
	for i := range kept {
		kept[i].Limit = kept[i].Limit.For("")
	}
	if old.family != family {
		family = strings.Clone(family) // which may be part of something large
	} else {
		family = old.family
	}
	sh.aside[h] = asideRow{kept, family}
	return fullAt(kept)
}

// fullAt returns the instant at which all accounts of a row are full, as the second
// word of a slot. With the start of no key it may be one interval late.
func fullAt(row bucket.Row) uint64 {
	full := bucket.Instant(0)
	for i := range row {
		a := &row[i]
		full = max(full, a.State.AsOf.Add(a.Limit.Peek(a.State, a.State.AsOf, 0, 0).FullAfter()))
	}
	return plainAt | uint64(full)
}

// drop deletes the row that was kept aside for a slot, if there is one.
func (sh *shard) drop(sl *slot, word uint64) {
	if word&aside == 0 {
		return
	}
	if delete(sh.aside, sl.hash()); len(sh.aside) == 0 {
		sh.aside = nil // maps do not shrink
	}
}

// takeAside decides about one bucket of a sliding log whose row has no other
// account, or reports that it cannot.
func (s *Store) takeAside(h hash, l *bucket.Limit, cost bucket.Tokens, maxWait time.Duration) (bucket.Verdict, bucket.Instant, bool) {
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	t := sh.table.Load()
	sl, word := t.find(h)
	if sl == nil || word&aside == 0 {
		return bucket.Verdict{}, 0, false
	}
	row := sh.aside[sl.hash()].row
	if len(row) != 1 || row[0].Limit != *l || l.Algorithm() != bucket.SlidingLog {
		return bucket.Verdict{}, 0, false
	}
	now := s.instant()
	v := l.SpendOn(&row[0].State, now, cost, maxWait)
	if v.Allowed() {
		atomic.StoreUint64(t.at(sl), fullAt(row))
	}
	return v, now, true
}
