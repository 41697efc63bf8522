// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

var _ store.Clearer = (*Store)(nil)

// ClearFamilies implements [store.Clearer]. A call clears one shard, with its overflow
// buckets: takes that need the mutex of the shard wait for some hundred microseconds.
func (s *Store) ClearFamilies(_ context.Context, families []string, from string) (removed int64, next string, err error) {
	at := 0
	if from != "" {
		if at, err = strconv.Atoi(from); err != nil || at < 0 || at >= len(s.shards) {
			return 0, "", fmt.Errorf("memstore: clear families: from %q: %w", from, store.ErrFrom)
		}
	}
	removed = s.clearShard(&s.shards[at], families)
	if at++; at < len(s.shards) {
		next = strconv.Itoa(at)
	}
	return removed, next, nil
}

// clearShard makes the buckets of a shard full whose keys have one of the families.
func (s *Store) clearShard(sh *shard, families []string) (removed int64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	t := sh.table.Load()
	for i := range t.slots {
		sl := &t.slots[i]
		word := atomic.LoadUint64(&sl.word)
		if word == 0 {
			continue
		}
		h := sl.hash()
		family := s.entry(atomic.LoadUint64(&sl.tag)).family // of another limit at most, while the mutex is held
		if word&aside != 0 {
			family = sh.aside[h].family
		}
		if family == "" || !slices.Contains(families, family) {
			continue
		}
		sl.lock()
		s.save(sl, h, "", &bucket.Limit{}, &bucket.State{}, 0)
		removed++
	}
	return removed
}
