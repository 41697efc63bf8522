// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// Penalties are beside the buckets, in a map of their key's shard, guarded by its mutex. Only takes with a penalty read
// them. A store holds at most MaxKeys penalties: at the bound, a denial starts none. The client is then limited by its
// bucket alone. The store never drops a penalty before it expires.

// penaltyGrace is how long a store keeps an expired penalty, for a clock that steps back.
const penaltyGrace bucket.Instant = 10_000_000

// penaltyTries bounds the expired penalties that a new one removes.
const penaltyTries = 4

// A penalty is the penalty of a key, and the key's family: see [store.Family].
type penalty struct {
	state  bucket.PenaltyState
	family string
}

func hasPenalty(charges []store.Charge) bool {
	return slices.ContainsFunc(charges, func(c store.Charge) bool { return c.Penalty != nil })
}

// applyPenalties applies the penalties of a take to the decisions of its limits, and reports whether no penalty is
// running. It starts the penalties of limits that deny.
func (s *Store) applyPenalties(tx *transaction, charges []store.Charge, snaps []bucket.Snapshot, mode mete.Mode) (free bool) {
	if mode.MaxWait == bucket.Forced {
		return true
	}
	free = true
	for i := range tx.cells {
		p, c := charges[i].Penalty, &tx.cells[i]
		if p == nil {
			continue
		}
		h := c.own.withoutNumber()
		sh := s.shard(c.own)
		before := sh.penalties[h]
		// A key without a bucket is not the cause of its denials.
		starts := !mode.DryRun && mode.MaxWait == 0 && c.spill == bucket.SpillNone
		state, started := p.Apply(&snaps[i], before.state, tx.now, starts)
		if started {
			s.putPenalty(sh, h, c.family, state, tx.now)
		}
		free = free && tx.now >= state.Until
	}
	return free
}

// putPenalty stores a penalty unless the store is full.
func (s *Store) putPenalty(sh *shard, h hash, family string, state bucket.PenaltyState, now bucket.Instant) {
	if sh.penalties == nil {
		sh.penalties = map[hash]penalty{}
	}
	old, known := sh.penalties[h]
	if !known {
		s.removeExpired(sh, now, penaltyTries)
		if s.penalized.Load() >= s.maxKeys {
			if s.removeExpired(sh, now, len(sh.penalties)); s.penalized.Load() >= s.maxKeys {
				s.unpenalized.Add(1)
				return
			}
		}
		s.penalized.Add(1)
	}
	if old.family != family {
		family = strings.Clone(family) // the string may be part of a large one
	} else {
		family = old.family
	}
	sh.penalties[h] = penalty{state, family}
}

// removeExpired removes expired penalties among some of the shard's.
func (s *Store) removeExpired(sh *shard, now bucket.Instant, tries int) {
	for h, p := range sh.penalties { // in random order
		if tries--; tries < 0 {
			return
		}
		if p.state.Expires < now-penaltyGrace {
			s.dropPenalty(sh, h)
		}
	}
}

func (s *Store) dropPenalty(sh *shard, h hash) {
	h = h.withoutNumber()
	if _, known := sh.penalties[h]; known {
		delete(sh.penalties, h)
		s.penalized.Add(-1)
	}
}

// clearPenalties ends the penalties of families.
func (s *Store) clearPenalties(sh *shard, families []string) {
	for h, p := range sh.penalties {
		if p.family != "" && slices.Contains(families, p.family) {
			s.dropPenalty(sh, h)
		}
	}
}

// writePenalties writes the penalties that have not expired.
func (s *Store) writePenalties(e *encoder) error {
	type entry struct {
		hash
		penalty
	}
	var list []entry
	var b []byte
	for i := range s.shards {
		sh := &s.shards[i]
		list = list[:0]
		sh.mu.Lock()
		for h, p := range sh.penalties {
			list = append(list, entry{h, p})
		}
		sh.mu.Unlock()
		now := s.instant()
		for _, p := range list {
			if now >= p.state.Expires {
				continue
			}
			b = appendHash(b, p.hash)
			b = append(binary.AppendUvarint(b, uint64(len(p.family))), p.family...)
			b = binary.AppendVarint(b, int64(p.state.Until-e.saved))
			b = binary.AppendUvarint(b, uint64(p.state.Length))
			b = binary.AppendUvarint(b, uint64(p.state.Expires-p.state.Until))
			b = binary.AppendUvarint(b, uint64(p.state.Level))
			if len(b) >= flushSize {
				if err := e.writeBlock(penaltiesBlock, b); err != nil {
					return err
				}
				b = b[:0]
			}
		}
	}
	if len(b) == 0 {
		return nil
	}
	return e.writeBlock(penaltiesBlock, b)
}

// readPenalty reads one penalty and stores it unless it has expired.
func (r *restorer) readPenalty(d *decoder) {
	s, h := r.store, d.hash()
	family := string(d.bytes(int(d.number(store.MaxKeyBytes))))
	longest := uint64(bucket.MaxPenalty.Microseconds())
	state := bucket.PenaltyState{Until: d.instant(r.saved) + r.shift, Length: int64(d.number(longest))}
	state.Expires = state.Until + bucket.Instant(d.number(longest))
	state.Level = int64(d.number(uint64(bucket.MaxTokens)))
	sh := s.shard(h)
	_, known := sh.penalties[h]
	if d.bad = d.bad || known || state.Length == 0 || state.Level == 0; d.bad || r.now >= state.Expires {
		return
	}
	if sh.penalties == nil {
		sh.penalties = map[hash]penalty{}
	}
	sh.penalties[h] = penalty{state, family}
	s.penalized.Add(1)
}
