// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

const (
	// maxLastKnown bounds the buckets of which a limiter remembers what the store
	// last showed, at 130 bytes each and 80 for each further version of the limit. Beyond
	// that, the limiter evicts the buckets that are full soonest, so it remembers the
	// limited clients longest.
	maxLastKnown = 1 << 16

	// setSize is how many of them share a place in the table.
	setSize = 8
)

// lastKnown remembers what the store last showed of buckets, so that a local
// bucket need not begin full.
type lastKnown struct {
	seed maphash.Seed
	sets func() []sightings // made when first needed
}

// sightings are those whose keys have some bits of their hashes in common.
type sightings struct {
	mu  sync.Mutex
	all [setSize]sighting
}

// A sighting is a bucket as it was seen, under each version of its limit that the process
// has had lately. Two keys have the same hash once in 10¹⁹, and are then taken for each
// other.
type sighting struct {
	hash  uint64
	row   bucket.Row
	noted uint64         // how many takes had been sent when it was noted
	full  bucket.Instant // when it will be full; 0 where this is no sighting
}

func newLastKnown() lastKnown {
	return lastKnown{
		seed: maphash.MakeSeed(),
		sets: sync.OnceValue(func() []sightings { return make([]sightings, maxLastKnown/setSize) }),
	}
}

func (k *lastKnown) set(key string) (uint64, *sightings) {
	hash := maphash.String(k.seed, key)
	sets := k.sets()
	return hash, &sets[hash%uint64(len(sets))]
}

// see remembers the snapshot of the sent'th take, after its cost.
func (k *lastKnown) see(key string, snap *bucket.Snapshot, cost bucket.Tokens, now bucket.Instant, sent, noted uint64) {
	hash, set := k.set(key)
	set.mu.Lock()
	defer set.mu.Unlock()
	soonest := &set.all[0]
	for i := range set.all {
		old := &set.all[i]
		if old.hash == hash && old.full != 0 {
			old.see(snap, cost, now, sent, noted)
			return
		}
		if old.full < soonest.full {
			soonest = old
		}
	}
	seen := sighting{hash: hash}
	if after := snap.FullAfter(); after > 0 && now.Add(after) > soonest.full {
		seen.see(snap, cost, now, sent, noted)
		*soonest = seen
	}
}

// see notes a snapshot after a cost, which the store has charged to the other versions, too.
// Of takes in flight at the same time, the answer that comes last may be the older one. The
// state that misses more is the later one, unless tokens were given back.
func (s *sighting) see(snap *bucket.Snapshot, cost bucket.Tokens, now bucket.Instant, sent, noted uint64) {
	l, state := &snap.Limit, snap.State(now)
	if i := find(s.row, l); i < 0 || s.noted < sent || l.Peek(s.row[i].State, now, 0, 0).Missing() <= snap.Missing() {
		s.noted = noted
	} else {
		state = s.row[i].State
	}
	if len(s.row) == 1 && s.row[0].Limit == *l {
		s.row[0].State = state // and no new row
	} else {
		s.row = s.row.Write(l, state, now, cost)
	}
	s.full = 0
	if after := s.row.FullAfter(now); after > 0 {
		s.full = now.Add(after)
	}
}

// recall returns the last known row of a bucket, nil for none.
func (k *lastKnown) recall(key string) bucket.Row {
	hash, set := k.set(key)
	set.mu.Lock()
	defer set.mu.Unlock()
	for i := range set.all {
		if s := &set.all[i]; s.hash == hash && s.full != 0 {
			return slices.Clone(s.row)
		}
	}
	return nil
}

// forget forgets a bucket.
func (k *lastKnown) forget(key string) {
	hash, set := k.set(key)
	set.mu.Lock()
	defer set.mu.Unlock()
	for i := range set.all {
		if s := &set.all[i]; s.hash == hash {
			*s = sighting{}
		}
	}
}

// Depart counts a take that is about to be sent to the store, until [Trip.Land].
func (f *Fallback) Depart(t *Trip, charges []store.Charge, mode store.Mode) {
	f.flying.depart(t, charges, mode)
}

// See remembers a snapshot that the store showed to the take of t after it spent cost.
func (f *Fallback) See(key string, snap *bucket.Snapshot, cost bucket.Tokens, t *Trip) {
	f.known.see(key, snap, cost, f.now(), t.sent, f.flying.sent.Load())
}
