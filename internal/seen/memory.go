// SPDX-License-Identifier: Apache-2.0

// Package seen remembers the buckets that a store last showed. A limiter denies by this
// memory, without a call of the store, a take that the store is sure to deny. In an outage,
// its local buckets begin with the tokens that were last seen missing.
//
// # Denials
//
// Buckets only refill as time passes, at a known rate. So a bucket that was seen a moment
// ago is sure to deny a cost for a known time, whatever other processes take from it:
//
//   - That time counts from before the store was asked. Unless somebody gives the bucket
//     tokens, the memory denies no take that the store would admit.
//   - The waits that it shows count from the store's answer, so a client that waits them
//     out is admitted. They exceed the store's own by one round trip at most.
//   - The memory does not see the costs of other processes. Remaining can be too high and
//     RetryAfter too short, as they can be behind any answer.
//   - The memory sees refunds and resets of its own limiter: see [Memory.Doubt]. A bucket
//     that gets tokens in another way can be denied for [Config.DenyFor] at most, although
//     the store would admit: by another process, another limit, the end of a lease, a clock
//     of the store that is set forward, or a refund that arrives after its call has failed.
package seen

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/bucket"
)

const (
	// maxLocal bounds the buckets that are remembered for local buckets, at 200 bytes each
	// and 80 for each further version of the limit. Beyond that, the memory evicts the
	// buckets that are full soonest, so it remembers the limited clients longest.
	maxLocal = 1 << 16

	// ways is the most sightings in one set, and minWays what the smallest memory holds.
	ways, minWays = 8, 4
)

// Config are the settings of a [Memory].
type Config struct {
	// Local reports whether local buckets begin with what was seen.
	Local bool

	// DenyFor is how long a sighting may deny; 0: the memory denies nothing.
	DenyFor time.Duration

	// DenyKeys bounds the buckets that are remembered for denials: at least 4, else rounded
	// down to a multiple of 8.
	DenyKeys int

	// DenyExactly excludes sightings that cannot show all that the store would: those of
	// sliding logs and of leased buckets.
	DenyExactly bool

	// Now is the clock of the memory. Nil is the process's monotonic clock.
	Now func() bucket.Instant
}

// A Memory remembers the buckets that a store last showed. It is made by [New] and is safe
// for concurrent use.
type Memory struct {
	config Config
	seed   maphash.Seed
	ways   int
	sets   func() []set // made when first needed

	sent    atomic.Uint64 // takes, counted
	denied  atomic.Uint64 // takes, counted
	denying atomic.Int64  // sightings with an until
}

// New returns an empty memory.
func New(c Config) *Memory {
	if c.Now == nil {
		started := time.Now()
		base := bucket.At(started)
		c.Now = func() bucket.Instant { return base.Add(time.Since(started)) }
	}
	size := 0
	if c.Local {
		size = maxLocal
	}
	if c.DenyFor > 0 {
		size += max(c.DenyKeys, minWays)
	}
	return &Memory{
		config: c, seed: maphash.MakeSeed(), ways: min(size, ways),
		sets: sync.OnceValue(func() []set { return make([]set, max(size/ways, 1)) }),
	}
}

// Now is the time by the clock of the memory.
func (m *Memory) Now() bucket.Instant { return m.config.Now() }

// Denies reports whether the memory may deny takes.
func (m *Memory) Denies() bool { return m.config.DenyFor > 0 }

// Stats are numbers of a [Memory].
type Stats struct {
	Denied  uint64 // takes that [Memory.Deny] denied since the memory was made
	Denying int    // buckets that are remembered for denials now, stale ones included
}

// Stats returns the numbers as they are.
func (m *Memory) Stats() Stats {
	return Stats{Denied: m.denied.Load(), Denying: int(m.denying.Load())}
}

// A set has the sightings of the keys whose hashes have some bits in common. Two keys have
// the same hash once in 10¹⁹, and are then taken for each other.
type set struct {
	// until is the time from which no sighting of the set denies; 0 where none does. It may
	// be too late. It is written under mu, and read without.
	until atomic.Int64

	mu     sync.Mutex // guards the fields below
	given  uint64     // how many takes had been sent when one of the keys was last given tokens
	hashes [ways]uint64
	seen   [ways]*sighting // nil: free
}

// A sighting is a bucket as the store last showed it, under each version of its limit that
// the process has had lately.
type sighting struct {
	family uint64 // a hash of the key's: see [store.Family]

	snap   bucket.Snapshot // under the version that was asked last, counted from at
	others bucket.Row      // under the others
	at     bucket.Instant  // when the answer arrived
	sent   bucket.Instant  // when the store had not been asked yet
	noted  uint64          // how many takes had been sent when it was noted

	until bucket.Instant // when the store is asked again; 0: it denies nothing
	full  bucket.Instant // when it is full; 0: no local bucket begins with it
}

// ends is the time from which the sighting is of no use.
func (g *sighting) ends() bucket.Instant { return max(g.until, g.full) }

func (m *Memory) set(key string) (uint64, *set) {
	hash := maphash.String(m.seed, key)
	sets := m.sets()
	i, _ := bits.Mul64(hash, uint64(len(sets)))
	return hash, &sets[i]
}

// find returns the slot of a sighting, -1 where there is none. The set is locked.
func (s *set) find(hash uint64) int {
	for i, h := range s.hashes {
		if h == hash && s.seen[i] != nil {
			return i
		}
	}
	return -1
}

// denies reports whether a sighting of the set may deny at now. It removes stale denials.
func (m *Memory) denies(s *set, now bucket.Instant) bool {
	until := bucket.Instant(s.until.Load())
	if until == 0 || now < until {
		return until != 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if until = bucket.Instant(s.until.Load()); now >= until && until != 0 {
		for i := range s.seen {
			m.undeny(s, i)
		}
		s.until.Store(0)
	}
	return s.until.Load() != 0
}

// undeny makes the sighting in a slot deny nothing, and frees the slot if it is then of no
// use. The set is locked.
func (m *Memory) undeny(s *set, i int) {
	if g := s.seen[i]; g != nil {
		m.limit(g, 0)
		if g.ends() == 0 {
			s.seen[i] = nil
		}
	}
}

// limit sets the until of a sighting, which is locked.
func (m *Memory) limit(g *sighting, until bucket.Instant) {
	switch {
	case g.until == 0 && until != 0:
		m.denying.Add(1)
	case g.until != 0 && until == 0:
		m.denying.Add(-1)
	}
	g.until = until
}

// Doubt has the store asked about a bucket that may have been given tokens, whatever is
// answered later to a take that was sent before. Local buckets begin with the sighting all
// the same: it may miss too much, and never too little. Call it after the store has
// returned, and also where it has failed.
func (m *Memory) Doubt(key string) {
	hash, s := m.set(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = m.sent.Load()
	if i := s.find(hash); i >= 0 {
		m.undeny(s, i)
	}
}

// Forget removes the sighting of a bucket that the store has made full.
func (m *Memory) Forget(key string) {
	hash, s := m.set(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = m.sent.Load()
	if i := s.find(hash); i >= 0 {
		m.limit(s.seen[i], 0)
		s.seen[i] = nil
	}
}

// ForgetFamilies removes the sightings of the families that the store has made full: see
// [store.Family]. Answers to takes that were sent before deny nothing, whatever their family.
func (m *Memory) ForgetFamilies(families []string) {
	hashes := make([]uint64, len(families))
	for i, family := range families {
		hashes[i] = maphash.String(m.seed, family)
	}
	sets := m.sets()
	for i := range sets {
		s := &sets[i]
		s.mu.Lock()
		s.given = m.sent.Load()
		for j, g := range s.seen {
			if g != nil && slices.Contains(hashes, g.family) {
				m.limit(g, 0)
				s.seen[j] = nil
			}
		}
		s.mu.Unlock()
	}
}

// Recall returns the row of a bucket as it was last seen, nil where it was not.
func (m *Memory) Recall(key string) bucket.Row {
	hash, s := m.set(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(hash); i >= 0 {
		return s.seen[i].row()
	}
	return nil
}

// row returns all versions of the bucket, the one that was asked last first.
func (g *sighting) row() bucket.Row {
	return append(bucket.Row{{Limit: g.snap.Limit, State: g.snap.State(g.at)}}, g.others...)
}
