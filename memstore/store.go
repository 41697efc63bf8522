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
)

// Bounds of a store.
const (
	// DefaultMaxKeys is the bound of a store whose Config names none.
	DefaultMaxKeys = 1 << 20

	// maxMaxKeys is the highest bound a Config can name.
	maxMaxKeys int64 = 1 << 32
)

// Config are a store's settings. The zero Config is a good one.
type Config struct {
	// MaxKeys bounds the buckets that are kept, not counting the overflow buckets
	// of limits, at about 40 bytes each; see the package's description for those that take
	// more. If zero, it is DefaultMaxKeys; memory is
	// used only as buckets come. What happens at the bound is in the package's
	// description.
	MaxKeys int

	// Now is the clock, for tests and for recorded traffic. It may stand still
	// and step back. If nil, it is the process's monotonic clock, set by the
	// wall clock when the store is made.
	Now func() bucket.Instant
}

// A Store keeps buckets in memory. It is safe for concurrent use, starts no
// goroutine and needs no Close. It is made by [New] or [Restore].
type Store struct {
	started time.Time
	base    bucket.Instant
	now     func() bucket.Instant // nil: the process's clock
	steady  bool                  // the clock never steps back: slots need no instant of their last take
	ahead   bucket.Instant        // no state that Restore read is of a later instant

	hasher hasher
	tables []atomic.Pointer[table] // a power of two
	shards []shard                 // as many
	shift  uint                    // of a hash, to its shard
	denied denials                 // where a take expects another
	limits limits
	ids    ids

	maxKeys int64
	used    atomic.Int64 // slots that are not empty

	overload   atomic.Int64 // the Instant at which every overflow bucket is full
	overflowed atomic.Uint64
	swept      atomic.Uint64 // the last shard that sweepOther looked at

	saving    sync.Mutex // held by Save
	documents documents
}

var _ mete.Store = (*Store)(nil)

// New returns an empty store.
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
	const perShard = 16384 // few enough that rebuilding a shard takes a fraction of a millisecond
	shards := 1 << bits.Len(uint(max(c.MaxKeys/perShard, 16)-1))
	s.tables, s.shards = make([]atomic.Pointer[table], shards), make([]shard, shards)
	s.shift = uint(64 - bits.TrailingZeros(uint(shards)))
	for i := range s.shards {
		s.shards[i].table = &s.tables[i]
		s.shards[i].minSlots = minSlots + i%(minSlots*(fullest-fresh)/fresh)
		s.tables[i].Store(emptyTable)
	}
	s.limits.init(s.base)
	s.ids.init()
	return s, nil
}

// emptyTable is every shard's first table. Nothing is ever written to it.
var emptyTable = &table{slots: make([]slot, 1)}

// instant reads the clock.
func (s *Store) instant() bucket.Instant {
	if s.now != nil {
		return s.now()
	}
	return s.base + bucket.Instant(time.Since(s.started)/time.Microsecond)
}

// index returns the number of h's shard: bits that its home does not depend on.
func (s *Store) index(h hash) int { return int(h.h1 >> s.shift) }

// Stats are a store's numbers.
type Stats struct {
	Keys       int64  // buckets that are kept, some of which may be full
	MaxKeys    int64  // the bound
	Overflowed uint64 // takes decided with an overflow bucket, allowed or denied, so far
}

// Stats returns the store's numbers.
func (s *Store) Stats() Stats {
	return Stats{Keys: s.used.Load(), MaxKeys: s.maxKeys, Overflowed: s.overflowed.Load()}
}
