// SPDX-License-Identifier: Apache-2.0

package seen

import (
	"hash/maphash"
	"slices"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A StartedTake identifies a take that is about to be sent to the store.
type StartedTake struct {
	at     bucket.Instant // an instant before the call
	number uint64         // sequence number of the take
}

// StartTake numbers a take that is about to be sent. at is an earlier instant. It is ignored if the memory does not deny.
func (m *Memory) StartTake(at bucket.Instant) StartedTake { return StartedTake{at, m.sent.Add(1)} }

// An Answer is the store's answer to one take. Call [Memory.Record] for each of its charges.
type Answer struct {
	asked    StartedTake
	mode     store.Mode
	allowed  bool
	received bucket.Instant // 0 until the clock is read
	until    bucket.Instant // how long a denial is valid; 0 if it is not
}

// isPlain reports whether a take spends all of its cost now or nothing.
func isPlain(mode *store.Mode) bool { return mode.MaxWait == 0 && !mode.UpTo }

// Answer returns the answer to the take that StartTake numbered.
func (m *Memory) Answer(asked StartedTake, mode store.Mode, allowed bool, snaps []bucket.Snapshot) Answer {
	a := Answer{asked: asked, mode: mode, allowed: allowed}
	// A dry run opens no account for a new version of the limit, so its state is not the one from which the
	// store continues.
	if m.Denies() && !allowed && isPlain(&mode) && !mode.DryRun {
		wait := snaps[0].RetryAfter
		for i := range snaps {
			wait = max(wait, snaps[i].RetryAfter)
		}
		a.received = m.Now()
		if until := asked.at.Add(min(wait, m.config.DenyFor)); until > a.received {
			a.until = until
		}
	}
	return a
}

// Record records one charge of an answer: a denying bucket, or if local, a bucket that may be decided locally.
// Other buckets are only updated if they are already in the memory. Slots never are.
func (m *Memory) Record(a *Answer, c *store.Charge, snap *bucket.Snapshot, local bool) {
	if isSlot(c) {
		return
	}
	hash, s := m.set(c.Key)
	if !local && a.until == 0 && !m.config.Local && !m.mayDeny(s, a.asked.at) {
		return
	}
	if a.received == 0 {
		a.received = m.Now()
	}
	noted := m.sent.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(hash)
	if i < 0 {
		m.add(s, hash, a, c, snap, local, noted)
		return
	}
	g := s.seen[i]
	until := g.update(a, snap, noted, a.asked.at.Add(m.config.DenyFor))
	if c.Shards > 1 || a.asked.number <= s.tokensAddedAt {
		until = 0
	}
	m.setUntil(g, until)
	if g.full != 0 || local {
		g.full = g.fullAt(a.received)
	}
	if g.expiry() == 0 {
		s.seen[i] = nil
	}
	s.until.Store(max(s.until.Load(), int64(until)))
}

// add inserts a new sighting, replacing the one that expires first if necessary. The set must be locked.
func (m *Memory) add(s *set, hash uint64, a *Answer, c *store.Charge, snap *bucket.Snapshot, local bool, noted uint64) {
	n := sighting{family: maphash.String(m.seed, store.Family(c.Key)), snap: *snap, at: a.received, sent: a.asked.at, recordedAt: noted}
	if local {
		if after := snap.FullAfter(); after > 0 {
			n.full = a.received.Add(after)
		}
	}
	until := a.until
	if c.Shards > 1 || a.asked.number <= s.tokensAddedAt {
		until = 0
	}
	place := -1
	soonest := max(n.full, until)
	for i, g := range s.seen[:m.ways] {
		ends := bucket.Instant(0)
		if g != nil {
			ends = g.expiry()
		}
		if ends < soonest {
			place, soonest = i, ends
		}
	}
	if place < 0 {
		return
	}
	g := s.seen[place]
	if g == nil {
		g = new(sighting)
	}
	m.setUntil(g, 0)
	*g = n
	m.setUntil(g, until)
	s.hashes[place], s.seen[place] = hash, g
	s.until.Store(max(s.until.Load(), int64(until)))
}

// update records a snapshot after its cost, which the store has also charged to the other versions. It returns
// the new until, at most latest.
//
// Answers to concurrent takes may arrive out of order, and the answer to a repeated take is an old one. The state with
// the larger deficit is the later one, unless tokens were refunded.
func (g *sighting) update(a *Answer, snap *bucket.Snapshot, noted uint64, latest bucket.Instant) (until bucket.Instant) {
	l, now := &snap.Limit, a.received
	first, reserved := g.snap.Limit == *l, !a.allowed && a.mode.MaxWait != 0
	repeated := a.allowed && a.mode.ID != "" && !a.mode.DryRun // possibly an answer from up to two minutes ago
	old := g.recordedAt >= a.asked.number || repeated
	var before bucket.State
	keep := false
	if old || reserved {
		var known bool
		if before, known = g.state(l); known {
			missed := l.Peek(before, now, 0, 0).Missing()
			if reserved && first && now < g.until && missed >= snap.Missing() {
				return g.until // the bucket is unchanged, and a reservation has a different wait
			}
			keep = missed > snap.Missing() && old
		}
	}
	cost := bucket.Tokens(0)
	if a.allowed && !a.mode.DryRun {
		cost = snap.Cost
	}
	if !first || len(g.others) > 0 {
		state := before
		if !keep {
			state = snap.State(now)
		}
		g.others = g.row().WithState(l, state, now, cost)[1:]
	}
	switch {
	case keep && first && repeated:
		return 0
	case keep && first:
		return g.until
	case keep:
		g.snap, g.at, g.sent = l.Peek(before, now, 0, 0), now, a.asked.at
		return 0
	}
	g.snap, g.at, g.sent, g.recordedAt = *snap, now, a.asked.at, noted
	if reserved || repeated || a.mode.DryRun && !first {
		return 0
	}
	return min(max(g.until, a.until), latest)
}

func (g *sighting) state(l *bucket.Limit) (s bucket.State, known bool) {
	if g.snap.Limit == *l {
		return g.snap.State(g.at), true
	}
	if i := slices.IndexFunc(g.others, func(x bucket.Account) bool { return x.Limit == *l }); i >= 0 {
		return g.others[i].State, true
	}
	return s, false
}

// fullAt returns the instant when all versions of the bucket are full, or 0 if they are at now.
func (g *sighting) fullAt(now bucket.Instant) (full bucket.Instant) {
	if after := g.snap.FullAfter(); after > 0 {
		full = g.at.Add(after)
	}
	if after := g.others.FullAfter(now); after > 0 {
		full = max(full, now.Add(after))
	}
	if full <= now {
		return 0
	}
	return full
}
