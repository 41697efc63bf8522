// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// denials are the buckets of takes that were denied, as they were last seen. A
// bucket has its place in one of many small sets, by a hash of its key. In the
// common case nothing in the set has been denied, and one load says so.
type denials struct {
	seed   maphash.Seed
	sets   []set
	maxAge time.Duration
	exact  bool

	denied atomic.Uint64
	keys   atomic.Int64
}

// ways is how many buckets a set holds.
const ways = 4

type set struct {
	// until is when the last sighting of the set is of no more use: 0 while there
	// is none. It is written under mu.
	until atomic.Int64

	mu    sync.Mutex    // guards the fields below
	given time.Duration // when one of the keys was last known to have been given tokens
	seen  []sighting
}

// A sighting is a bucket as the store showed it, at some instant between sent
// and received.
type sighting struct {
	key            string
	snap           bucket.Snapshot
	sent, received time.Duration
	until          time.Duration // from when on the store is asked
}

func newDenials(c Config) *denials {
	return &denials{
		seed:   maphash.MakeSeed(),
		sets:   make([]set, max(c.MaxKeys/ways, 1)),
		maxAge: c.MaxAge,
		exact:  c.ExactRemaining,
	}
}

func (d *denials) setOf(key string) *set {
	i, _ := bits.Mul64(maphash.String(d.seed, key), uint64(len(d.sets)))
	return &d.sets[i]
}

// live reports whether anything in the set may be of use at now. What is of no
// use any more it clears away.
func (d *denials) live(s *set, now time.Duration) bool {
	until := time.Duration(s.until.Load())
	if until == 0 || now < until {
		return until != 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if until = time.Duration(s.until.Load()); now >= until && until != 0 {
		d.keys.Add(-int64(len(s.seen)))
		clear(s.seen)
		s.seen = s.seen[:0]
		s.until.Store(0)
	}
	return s.until.Load() != 0
}

// find returns the sighting of the key, nil if there is none. The set is locked.
func (s *set) find(key string) *sighting {
	for i := range s.seen {
		if s.seen[i].key == key {
			return &s.seen[i]
		}
	}
	return nil
}

// answer denies a plain take if, by what has been seen, the store would.
func (d *denials) answer(dst []bucket.Snapshot, charges []mete.Charge, now time.Duration) ([]bucket.Snapshot, bool) {
	for i := range charges {
		if !d.live(d.setOf(charges[i].Key), now) {
			return dst, false
		}
	}
	first, denied := len(dst), false
	for i := range charges {
		snap, denies, ok := d.look(&charges[i], now)
		if !ok {
			return dst[:first], false
		}
		dst, denied = append(dst, snap), denied || denies
	}
	if !denied {
		return dst[:first], false
	}
	d.denied.Add(1)
	return dst, true
}

// look returns what the store would show of a bucket now, and whether that is
// sure to deny. It is not ok where it is not known.
func (d *denials) look(c *mete.Charge, now time.Duration) (snap bucket.Snapshot, denies, ok bool) {
	s := d.setOf(c.Key)
	s.mu.Lock()
	found := s.find(c.Key)
	if found == nil || now < found.received || now >= found.until || found.snap.Limit != c.Limit {
		s.mu.Unlock()
		return snap, false, false
	}
	snap = found.snap
	sent, received := found.sent, found.received
	s.mu.Unlock()

	if snap, ok = d.judge(snap, c); !ok {
		return snap, false, false
	}
	// The store may have looked at the bucket as early as sent, and it cuts
	// instants to microseconds: it may admit that much sooner.
	denies = snap.RetryAfter-time.Microsecond >= now-sent
	return snap.Later(now - received), denies, true
}

// judge returns snap as it would have been for the cost of c. It is not ok where
// that cannot be known.
func (d *denials) judge(snap bucket.Snapshot, c *mete.Charge) (bucket.Snapshot, bool) {
	if snap.Limit.Algorithm() != bucket.SlidingLog && !c.Leased {
		snap.Cost, snap.RetryAfter = c.Cost, snap.RoomAfter(c.Cost)
		snap.Allowed = snap.RetryAfter == 0
		return snap, true
	}
	// What comes back when is not in the snapshot, but for its own cost.
	switch {
	case d.exact:
		return snap, false
	case c.Cost == snap.Cost && !snap.Allowed:
	case c.Cost > snap.Limit.Capacity():
		snap.Allowed, snap.RetryAfter = false, bucket.Never
	case 0 < c.Cost && c.Cost <= snap.Remaining():
		snap.Allowed, snap.RetryAfter = true, 0
	default:
		return snap, false
	}
	snap.Cost = c.Cost
	return snap, true
}
