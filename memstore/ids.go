// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// MaxIDs bounds the admitted takes and refunds that a store remembers by ID. At the bound it drops the oldest
// ones early: a retry would then be charged or refunded again.
const MaxIDs = 1 << 18

// ids remembers admitted takes and refunds by ID, in stripes. A stripe is locked during a decision, so
// concurrent attempts with one ID run one after the other.
type ids [64]idStripe

type idStripe struct {
	mu    sync.Mutex // guards the fields below
	known map[hash]*idRecord
	order []*idRecord // oldest first, starting at next
	next  int
}

// An idRecord is an admitted take or a refund.
type idRecord struct {
	id    hash
	until bucket.Instant
	snaps []bucket.Snapshot // with the limits of that take, which their states need
}

func (s *ids) init() {
	for i := range s {
		s[i].known = map[hash]*idRecord{}
	}
}

func (s *ids) lock(name hash) *idStripe {
	stripe := &s[name.h1%uint64(len(s))]
	stripe.mu.Lock()
	return stripe
}

func (t *idStripe) lookup(name hash, now bucket.Instant) *idRecord {
	if d := t.known[name]; d != nil && now < d.until {
		return d
	}
	return nil
}

// takeWithID takes, or returns the earlier answer for the same ID.
func (s *Store) takeWithID(dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool) {
	name := s.hashID("take", mode.ID, len(charges), func(i int) string { return charges[i].Key })
	stripe := s.ids.lock(name)
	defer stripe.mu.Unlock()
	if d := stripe.lookup(name, s.instant()); d != nil {
		return append(dst, d.snaps...), true
	}
	mark := len(dst)
	dst, allowed := s.takeLocked(dst, charges, mode)
	if allowed {
		now := s.instant()
		stripe.record(&idRecord{name, now.Add(store.RetryHorizon), slices.Clone(dst[mark:])}, now)
	}
	return dst, allowed
}

func (t *idStripe) record(d *idRecord, now bucket.Instant) {
	const most = MaxIDs / len(ids{})
	for t.next < len(t.order) && (t.order[t.next].until <= now || len(t.order)-t.next >= most) {
		old := t.order[t.next]
		if t.known[old.id] == old {
			delete(t.known, old.id)
		}
		t.order[t.next] = nil
		t.next++
	}
	if t.next > len(t.order)/2 { // compact when half of it is free: each entry moves about once
		t.order = slices.Delete(t.order, 0, t.next)
		t.next = 0
	}
	t.known[d.id] = d
	t.order = append(t.order, d)
}

// hashID returns the name of a take or a refund: a hash of its ID and its n keys.
func (s *Store) hashID(op, id string, n int, key func(i int) string) hash {
	text := make([]byte, 0, 256)
	add := func(part string) {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	add(op)
	add(id)
	for i := range n {
		add(key(i))
	}
	return s.hasher.hash(string(text))
}
