// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lane"
	"github.com/metehq/mete/store"
)

// An ask is one operation on its way to PostgreSQL and back.
type ask struct {
	lane.Ticket
	refund  bool
	charges []store.Charge
	taken   []bucket.Taken // of a refund: what its charges cancel
	mode    mete.Mode
	memory  memoryKey // set where mode.ID is

	again bool // it could not be decided as a plain take
	waits bool // one of its buckets is held: see held

	snaps   []bucket.Snapshot
	allowed bool
}

// A memoryKey is what a take or a refund is remembered by.
type memoryKey [sha256.Size]byte

var asks = sync.Pool{New: func() any { return new(ask) }}

// newAsk returns an ask with a copy of the charges: it may live longer than the
// call it is made for.
func (s *Store) newAsk(charges []store.Charge, mode mete.Mode) *ask {
	a := asks.Get().(*ask)
	a.charges = append(a.charges[:0], charges...)
	if a.mode = mode; mode.DryRun {
		a.mode.ID = "" // it makes no difference then
	}
	if a.mode.ID != "" {
		a.memory = s.memoryKey("take", mode.ID, charges)
	}
	return a
}

// newRefund is newAsk for refunds. Their IDs are apart from those of takes.
func (s *Store) newRefund(refunds []mete.Refund, id string) *ask {
	a := asks.Get().(*ask)
	a.refund, a.charges, a.taken = true, a.charges[:0], a.taken[:0]
	for i := range refunds {
		a.charges, a.taken = append(a.charges, refunds[i].Charge), append(a.taken, refunds[i].Taken)
	}
	if a.mode = (mete.Mode{ID: id}); id != "" {
		a.memory = s.memoryKey("refund", id, a.charges)
	}
	return a
}

// memoryKey tells operations apart that have different IDs, keys or prefixes.
func (s *Store) memoryKey(operation, id string, charges []store.Charge) (key memoryKey) {
	h := sha256.New()
	add := func(text string) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(text)))
		h.Write(size[:])
		h.Write([]byte(text))
	}
	add(operation)
	add(s.config.Prefix)
	add(id)
	for i := range charges {
		add(charges[i].Key)
	}
	h.Sum(key[:0])
	return key
}

// release puts back an ask that has been answered.
func (a *ask) release() {
	clear(a.charges)
	a.charges, a.taken, a.snaps = a.charges[:0], a.taken[:0], a.snaps[:0]
	a.refund, a.again, a.waits, a.allowed, a.mode, a.Err = false, false, false, false, mete.Mode{}, nil
	asks.Put(a)
}

// plain reports whether a is a take from one token bucket that needs nothing
// special, and could be admitted: those of one bucket at one cost are charged
// together.
func (a *ask) plain() bool {
	if a.refund || len(a.charges) != 1 || a.mode.ID != "" || a.mode.MaxWait != 0 || a.mode.DryRun || a.mode.UpTo {
		return false
	}
	l, cost := &a.charges[0].Limit, a.charges[0].Cost
	n, _ := l.Refill()
	return l.Algorithm() == bucket.Continuous && !l.Queued() && n > 0 && 0 < cost && cost <= l.Capacity()
}
