// SPDX-License-Identifier: Apache-2.0

// Package seen remembers the latest bucket states in the answers of a store. From this memory, a limiter denies
// takes that the store is certain to deny, without a call. During an outage, its local buckets start with the
// last known deficit.
//
// # Denials
//
// Without new tokens, a bucket only refills, at a known rate. A recently seen bucket therefore denies a cost
// for a known time, even if other processes take tokens:
//
//   - The time counts from before the call to the store. Unless the bucket is given tokens, the memory denies no
//     take that the store would admit.
//   - The returned waits count from the store's answer, so a client that waits is admitted. They exceed the store's
//     own waits by at most one round trip.
//   - The memory does not see costs of other processes. Remaining can be too high and RetryAfter too short, as in
//     any answer that is slightly old.
//   - The memory sees refunds and resets of its own limiter: see [Memory.Invalidate]. Other sources of tokens take effect
//     after at most [Config.DenyFor]. Examples are other processes, other limits, the end of a lease, a store clock
//     that is set forward, and a late refund.
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
	// maxLocal bounds the buckets remembered for local buckets, at 200 bytes each and 80 per additional version
	// of the limit. Above the bound, the memory evicts the buckets that are full soonest, and keeps limited
	// clients longest.
	maxLocal = 1 << 16

	// ways is the number of sightings per set, and minWays the smallest size of a memory.
	ways, minWays = 8, 4
)

type Config struct {
	// Local enables sightings for local buckets.
	Local bool

	// DenyFor is the longest validity of a denial; with 0, the memory denies nothing.
	DenyFor time.Duration

	// DenyKeys bounds the buckets remembered for denials. It is at least 4, and otherwise rounded down to a
	// multiple of 8.
	DenyKeys int

	// DenyExactly excludes sightings of sliding logs and leased buckets, which cannot reproduce the store's whole
	// answer.
	DenyExactly bool

	// Now is the clock of the memory. Nil means the process's monotonic clock.
	Now func() bucket.Instant
}

// A Memory holds the latest known states of a store's buckets. Use [New]. It is safe for concurrent use.
type Memory struct {
	config Config
	seed   maphash.Seed
	ways   int
	sets   func() []set // allocated on first use

	sent    atomic.Uint64 // number of takes sent
	denied  atomic.Uint64 // number of takes denied
	denying atomic.Int64  // number of sightings with an until
}

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

// Now returns the time of the memory's clock.
func (m *Memory) Now() bucket.Instant { return m.config.Now() }

// Denies reports whether the memory may deny takes.
func (m *Memory) Denies() bool { return m.config.DenyFor > 0 }

// Stats holds the counters of a [Memory].
type Stats struct {
	Denied  uint64 // takes that [Memory.Deny] denied
	Denying int    // buckets remembered for denials, including stale ones
}

func (m *Memory) Stats() Stats {
	return Stats{Denied: m.denied.Load(), Denying: int(m.denying.Load())}
}

// A set holds the sightings of keys with some common bits in their hashes. Two keys have the same hash with a
// probability of 10⁻¹⁹, and then share a sighting.
type set struct {
	// until is the instant from which no sighting of the set denies, or 0 if none does. It may be later than necessary. It
	// is written under mu and read without it.
	until atomic.Int64

	mu            sync.Mutex // guards the fields below
	tokensAddedAt uint64     // value of Memory.sent when a key last got tokens
	hashes        [ways]uint64
	seen          [ways]*sighting // nil for a free slot
}

// A sighting is the last known state of a bucket, under each recent version of its limit.
type sighting struct {
	family uint64 // hash of the key's family: see [store.Family]

	snap       bucket.Snapshot // under the latest version; its durations count from at.
	others     bucket.Row      // under the other versions
	at         bucket.Instant  // when the answer arrived.
	sent       bucket.Instant  // an instant before the call
	recordedAt uint64          // value of Memory.sent when it was recorded

	until bucket.Instant // denies until then; 0 if it does not deny
	full  bucket.Instant // when it is full; 0 if not used for local buckets
}

// expiry returns the instant from which the sighting is useless.
func (g *sighting) expiry() bucket.Instant { return max(g.until, g.full) }

func (m *Memory) set(key string) (uint64, *set) {
	hash := maphash.String(m.seed, key)
	sets := m.sets()
	i, _ := bits.Mul64(hash, uint64(len(sets)))
	return hash, &sets[i]
}

// find returns the index of a sighting, or -1. The set must be locked.
func (s *set) find(hash uint64) int {
	for i, h := range s.hashes {
		if h == hash && s.seen[i] != nil {
			return i
		}
	}
	return -1
}

// mayDeny reports whether a sighting of the set may deny at now. It removes stale denials.
func (m *Memory) mayDeny(s *set, now bucket.Instant) bool {
	until := bucket.Instant(s.until.Load())
	if until == 0 || now < until {
		return until != 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if until = bucket.Instant(s.until.Load()); now >= until && until != 0 {
		for i := range s.seen {
			m.clearDenial(s, i)
		}
		s.until.Store(0)
	}
	return s.until.Load() != 0
}

// clearDenial removes the denial of a sighting, and frees the slot if the sighting is then useless. The set
// must be locked.
func (m *Memory) clearDenial(s *set, i int) {
	if g := s.seen[i]; g != nil {
		m.setUntil(g, 0)
		if g.expiry() == 0 {
			s.seen[i] = nil
		}
	}
}

func (m *Memory) setUntil(g *sighting, until bucket.Instant) {
	switch {
	case g.until == 0 && until != 0:
		m.denying.Add(1)
	case g.until != 0 && until == 0:
		m.denying.Add(-1)
	}
	g.until = until
}

// Invalidate makes the limiter call the store for a bucket that may have been given tokens. It also invalidates
// answers to takes that are in flight. Local buckets may still use the sighting: its deficit may be too large,
// but never too small. Call Invalidate after the store has returned, even with an error.
func (m *Memory) Invalidate(key string) {
	hash, s := m.set(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokensAddedAt = m.sent.Load()
	if i := s.find(hash); i >= 0 {
		m.clearDenial(s, i)
	}
}

// Remove removes the sighting of a bucket after a reset.
func (m *Memory) Remove(key string) {
	hash, s := m.set(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokensAddedAt = m.sent.Load()
	if i := s.find(hash); i >= 0 {
		m.setUntil(s.seen[i], 0)
		s.seen[i] = nil
	}
}

// DropFamilies removes the sightings of families after a reset: see [store.Family]. Answers to earlier takes
// then deny nothing, regardless of their family.
func (m *Memory) DropFamilies(families []string) {
	hashes := make([]uint64, len(families))
	for i, family := range families {
		hashes[i] = maphash.String(m.seed, family)
	}
	sets := m.sets()
	for i := range sets {
		s := &sets[i]
		s.mu.Lock()
		s.tokensAddedAt = m.sent.Load()
		for j, g := range s.seen {
			if g != nil && slices.Contains(hashes, g.family) {
				m.setUntil(g, 0)
				s.seen[j] = nil
			}
		}
		s.mu.Unlock()
	}
}

// Recall returns the last known row of a bucket, or nil.
func (m *Memory) Recall(key string) bucket.Row {
	hash, s := m.set(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(hash); i >= 0 {
		return s.seen[i].row()
	}
	return nil
}

func (g *sighting) row() bucket.Row {
	return append(bucket.Row{{Limit: g.snap.Limit, State: g.snap.State(g.at)}}, g.others...)
}
