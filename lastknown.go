// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"hash/maphash"
	"sync"

	"github.com/metehq/mete/bucket"
)

const (
	// maxLastKnown bounds the buckets of which a limiter remembers what the store
	// last showed, at 72 bytes each. Beyond that, those that are full soonest are
	// forgotten: whoever is being limited is remembered longest.
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

// A sighting is a bucket as it was seen. Two keys have the same hash once in
// 10¹⁹, and are then taken for each other.
type sighting struct {
	hash  uint64
	state bucket.State
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

// see remembers what a snapshot shows, which a take has brought that was the sent'th. Of
// takes in flight at the same time, the answer that comes last may be the older one: what
// misses more is the later state, unless tokens were given back.
func (k *lastKnown) see(key string, snap *bucket.Snapshot, now bucket.Instant, sent, noted uint64) {
	hash, set := k.set(key)
	seen := sighting{hash: hash, state: snap.State(now), noted: noted}
	if seen.state.Spent > 0 {
		seen.full = now.Add(snap.FullAfter())
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	soonest := &set.all[0]
	for i := range set.all {
		old := &set.all[i]
		if old.hash == hash && old.full != 0 {
			if old.noted < sent || snap.Limit.Peek(old.state, now, 0, 0).Missing() <= snap.Missing() {
				*old = seen
			}
			return
		}
		if old.full < soonest.full {
			soonest = old
		}
	}
	if seen.full > soonest.full {
		*soonest = seen
	}
}

// recall returns what was last seen of a bucket: a full one where nothing was.
func (k *lastKnown) recall(key string) bucket.State {
	hash, set := k.set(key)
	set.mu.Lock()
	defer set.mu.Unlock()
	for i := range set.all {
		if s := &set.all[i]; s.hash == hash && s.full != 0 {
			return s.state
		}
	}
	return bucket.State{}
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
