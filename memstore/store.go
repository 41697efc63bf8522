// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

const (
	// DefaultMaxKeys is the default of [Config.MaxKeys].
	DefaultMaxKeys = 1 << 20

	// maxMaxKeys is the largest value of [Config.MaxKeys].
	maxMaxKeys int64 = 1 << 32
)

// Config holds the settings of a store. The zero Config is valid.
type Config struct {
	// MaxKeys bounds the number of buckets, at about 40 bytes each, without overflow buckets. The package
	// documentation lists buckets that need more, and describes the behavior at the bound. It also bounds the number of
	// slots of concurrency limits. Zero means DefaultMaxKeys. The store allocates memory only as buckets arrive.
	MaxKeys int

	// Now is the clock, for tests and recorded traffic. It may stand still and step back. If nil, the store
	// uses the process's monotonic clock, set by the wall clock at creation.
	Now func() bucket.Instant
}

// A Store keeps buckets in memory. It is safe for concurrent use, starts no goroutine and needs no Close. Use
// [New] or [Restore].
type Store struct {
	started        time.Time
	base           bucket.Instant
	now            func() bucket.Instant // nil for the process's clock
	steady         bool                  // the clock never steps back, so slots need no instant of their last take.
	latestRestored bucket.Instant        // the latest instant of a restored state

	hasher  hasher
	tables  []atomic.Pointer[table] // length is a power of two
	shards  []shard                 // as many as tables
	shift   uint                    // from a hash to the index of its shard
	denials denials                 // hashes of recently denied keys
	limits  limits
	ids     ids
	holds   holds
	slots   slots // of concurrency limits

	maxKeys int64
	used    atomic.Int64 // slots in use

	penalized   atomic.Int64 // keys with a penalty
	unpenalized atomic.Uint64

	overload    atomic.Int64 // the Instant at which every overflow bucket is full
	spilled     spillCounts
	sweepCursor atomic.Uint64 // the last shard that sweepOthers visited

	saving    sync.Mutex // held by Save
	documents documents
}

var (
	_ mete.Store       = (*Store)(nil)
	_ store.SlotLister = (*Store)(nil)
)

func New(c Config) (*Store, error) {
	if c.MaxKeys < 0 || int64(c.MaxKeys) > maxMaxKeys {
		return nil, fmt.Errorf("memstore: max keys %d: must be between 1 and %d, or 0 for %d", c.MaxKeys, maxMaxKeys, DefaultMaxKeys)
	}
	if c.MaxKeys == 0 {
		c.MaxKeys = DefaultMaxKeys
	}
	s := &Store{
		started: time.Now(),
		now:     c.Now,
		steady:  c.Now == nil,
		hasher:  newHasher(),
		maxKeys: int64(c.MaxKeys),
	}
	if s.base = bucket.At(s.started); s.now != nil {
		s.base = max(s.now(), 0)
	}
	const perShard = 16384 // rebuilding a shard takes a fraction of a millisecond
	shards := 1 << bits.Len(uint(max(c.MaxKeys/perShard, 16)-1))
	s.tables, s.shards = make([]atomic.Pointer[table], shards), make([]shard, shards)
	s.shift = uint(64 - bits.TrailingZeros(uint(shards)))
	for i := range s.shards {
		s.shards[i].table = &s.tables[i]
		s.shards[i].minSlots = minSlots + i%(minSlots*(maxLoad-freshLoad)/freshLoad)
		s.tables[i].Store(emptyTable)
	}
	s.limits.init(s.base)
	s.ids.init()
	return s, nil
}

var emptyTable = &table{slots: make([]slot, 1)}

func (s *Store) instant() bucket.Instant {
	if s.now != nil {
		return s.now()
	}
	return s.base + bucket.Instant(time.Since(s.started)/time.Microsecond)
}

func (s *Store) index(h hash) int { return int(h.h1 >> s.shift) }

// Stats holds the counters of a store.
type Stats struct {
	Keys    int64 // buckets in the store, including full ones
	Slots   int64 // slots of concurrency limits, at most MaxKeys; slots that have ended may count for a while
	MaxKeys int64 // the bound

	// Takes so far that found no space for a key or a slot, allowed or denied, by their [store.OnFull].
	Overflowed uint64 // used an overflow bucket
	Opened     uint64 // passed a limit
	Closed     uint64 // were denied by a limit

	Penalties   int64  // keys under a penalty, or with a level that has not expired; at most MaxKeys
	Unpenalized uint64 // denials so far that started no penalty, because there were MaxKeys penalties
}

// Spilled returns the number of takes so far that found no space for a key. A take with several effects counts for each.
func (s Stats) Spilled() uint64 { return s.Overflowed + s.Opened + s.Closed }

// Stats returns the current counters.
func (s *Store) Stats() Stats {
	return Stats{Keys: s.used.Load(), Slots: s.slots.used.Load(), MaxKeys: s.maxKeys, Overflowed: s.spilled[bucket.SpillShared].Load(),
		Opened: s.spilled[bucket.SpillOpened].Load(), Closed: s.spilled[bucket.SpillClosed].Load(),
		Penalties: s.penalized.Load(), Unpenalized: s.unpenalized.Load()}
}
