// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// MaxIDs bounds the admitted takes that a store remembers by [mete.Mode.ID].
// Beyond it the oldest are forgotten before their time, and would be charged
// again.
const MaxIDs = 1 << 18

// ids remembers admitted takes by their IDs, in stripes that are locked while
// one of their takes is decided: of two attempts at once, one waits for the
// other.
type ids [64]idStripe

type idStripe struct {
	mu    sync.Mutex // guards what is below
	known map[hash]*decided
	order []*decided // oldest first, from next on
	next  int
}

// decided is a take that was admitted.
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

// takeOnce takes, or answers again what it did under the same ID.
func (s *Store) takeOnce(dst []bucket.Snapshot, charges []mete.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	id := s.idOf(mode.ID, charges)
	stripe := &s.ids[id.h1%uint64(len(s.ids))]
	stripe.mu.Lock()
	defer stripe.mu.Unlock()
	if d := stripe.known[id]; d != nil && s.instant() < d.until {
		return append(dst, d.snaps...), true, nil
	}
	mark := len(dst)
	dst, allowed, err := s.takeLocked(dst, charges, mode)
	if allowed && err == nil {
		now := s.instant()
		stripe.remember(&decided{id, now.Add(mete.RetryHorizon), slices.Clone(dst[mark:])}, now)
	}
	return dst, allowed, err
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

// idOf stands for a take by its ID and keys.
func (s *Store) idOf(id string, charges []mete.Charge) hash {
	text := make([]byte, 0, 256)
	add := func(part string) {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	add(id)
	for i := range charges {
		add(charges[i].Key)
	}
	return s.hasher.hash(string(text))
}
