// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/metehq/mete/store"
)

var _ store.Clearer = (*Store)(nil)

// ClearFamilies implements [store.Clearer]. Each call clears one shard and its overflow buckets. It holds the
// shard's mutex for a few hundred microseconds.
func (s *Store) ClearFamilies(_ context.Context, families []string, from string) (removed int64, next string, err error) {
	at := 0
	if from != "" {
		if at, err = strconv.Atoi(from); err != nil || at < 0 || at >= len(s.shards) {
			return 0, "", fmt.Errorf("memstore: clear families: from %q: %w", from, store.ErrFrom)
		}
	}
	removed = s.clearShard(&s.shards[at], families)
	if at < slotStripes {
		removed += s.clearSlots(at, families)
	}
	if at++; at < len(s.shards) {
		next = strconv.Itoa(at)
	}
	return removed, next, nil
}

// clearShard resets the buckets of a shard with a key of one of the families.
func (s *Store) clearShard(sh *shard, families []string) (removed int64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s.clearPenalties(sh, families)
	t := sh.table.Load()
	for i := range t.slots {
		sl := &t.slots[i]
		word := atomic.LoadUint64(&sl.word)
		if word == 0 {
			continue
		}
		h := sl.hash()
		family := s.entry(atomic.LoadUint64(&sl.tag)).family // while the mutex is held, at most the limit changes
		if word&hasSideRow != 0 {
			family = sh.sideRows[h].family
		}
		if family == "" || !slices.Contains(families, family) {
			continue
		}
		sl.lock()
		s.reset(sl, h)
		removed++
	}
	return removed
}
