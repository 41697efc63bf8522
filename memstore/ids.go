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

// MaxIDs bounds the admitted takes and the refunds that a store remembers by their
// IDs. Beyond it the oldest are forgotten before their time: a retry would be charged
// or refunded again.
const MaxIDs = 1 << 18

// ids remembers admitted takes and refunds by their IDs, in stripes that are locked
// while one of theirs is decided: of two attempts at once, one waits for the other.
type ids [64]idStripe

type idStripe struct {
	mu    sync.Mutex // guards what is below
	known map[hash]*decided
	order []*decided // oldest first, from next on
	next  int
}

// decided is a take that was admitted, or a refund.
type decided struct {
	id    hash
	until bucket.Instant
	snaps []bucket.Snapshot // with the limits of then: others could not read them
}

func (s *ids) init() {
	for i := range s {
		s[i].known = map[hash]*decided{}
	}
}

// lock returns the stripe of a name, locked.
func (s *ids) lock(name hash) *idStripe {
	stripe := &s[name.h1%uint64(len(s))]
	stripe.mu.Lock()
	return stripe
}

// recall returns what the stripe remembers by a name at now; nil if that is nothing.
func (t *idStripe) recall(name hash, now bucket.Instant) *decided {
	if d := t.known[name]; d != nil && now < d.until {
		return d
	}
	return nil
}

// takeOnce takes, or answers again what it did under the same ID.
func (s *Store) takeOnce(dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool) {
	name := s.nameOf("take", mode.ID, len(charges), func(i int) string { return charges[i].Key })
	stripe := s.ids.lock(name)
	defer stripe.mu.Unlock()
	if d := stripe.recall(name, s.instant()); d != nil {
		return append(dst, d.snaps...), true
	}
	mark := len(dst)
	dst, allowed := s.takeLocked(dst, charges, mode)
	if allowed {
		now := s.instant()
		stripe.remember(&decided{name, now.Add(store.RetryHorizon), slices.Clone(dst[mark:])}, now)
	}
	return dst, allowed
}

// remember keeps d, and forgets what is over.
func (t *idStripe) remember(d *decided, now bucket.Instant) {
	const most = MaxIDs / len(ids{})
	for t.next < len(t.order) && (t.order[t.next].until <= now || len(t.order)-t.next >= most) {
		old := t.order[t.next]
		if t.known[old.id] == old {
			delete(t.known, old.id)
		}
		t.order[t.next] = nil
		t.next++
	}
	if t.next > len(t.order)/2 { // half of it is free: each entry moves about once
		t.order = slices.Delete(t.order, 0, t.next)
		t.next = 0
	}
	t.known[d.id] = d
	t.order = append(t.order, d)
}

// nameOf stands for a take or a refund by its ID and its n keys.
func (s *Store) nameOf(op, id string, n int, key func(i int) string) hash {
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
