// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"sync/atomic"
	"time"

	"github.com/metehq/mete/bucket"
)

// Put aside, in a map of their shard, are the states that do not fit a slot:
// sliding logs, and the few windows and intervals that lie years away from the
// start of the store. They are read and changed under the shard's mutex.

// put keeps h's state aside and returns the at of its slot: when it is full.
func (sh *shard) put(h hash, state *bucket.State, shape *bucket.Limit) (at uint64) {
	h.h1 &^= shapeMask
	kept := sh.aside[h]
	if kept == nil {
		if sh.aside == nil {
			sh.aside = map[hash]*bucket.State{}
		}
		kept = new(bucket.State)
		sh.aside[h] = kept
	}
	*kept = *state
	return fullAt(kept, shape)
}

// fullAt returns the instant at which a state under a limit of that shape is
// full, as the at of a slot.
func fullAt(state *bucket.State, shape *bucket.Limit) uint64 {
	full := shape.Peek(*state, state.AsOf, 0, 0).FullAfter()
	return plainAt | uint64(max(state.AsOf.Add(full), 0))
}

// drop forgets what was put aside for a slot that is given up.
func (sh *shard) drop(sl *slot, word uint64) {
	if word&aside != 0 {
		delete(sh.aside, sl.hash())
	}
}

// takeAside decides about one bucket of a sliding log that was put aside, or
// says that it must be done otherwise.
func (s *Store) takeAside(h hash, l *bucket.Limit, cost bucket.Tokens, maxWait time.Duration) (bucket.Verdict, bool) {
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sl, word := sh.table.Load().find(h)
	if sl == nil || word&aside == 0 || !l.SameShape(&s.shape(atomic.LoadUint64(&sl.tag)).Limit) || l.Algorithm() != bucket.SlidingLog {
		return bucket.Verdict{}, false
	}
	state := sh.aside[sl.hash()]
	v := l.SpendOn(state, s.instant(), cost, maxWait)
	if v.Allowed() {
		atomic.StoreUint64(&sl.at, fullAt(state, l))
	}
	return v, true
}
