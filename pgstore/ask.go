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

type ask struct {
	lane.Ticket
	refund  bool
	charges []store.Charge
	taken   []bucket.Taken // of a refund: the takes that its charges cancel
	mode    mete.Mode
	memory  memoryKey // set if mode.ID is set

	retryMixed bool // a plain take could not decide it
	onHeldLane bool // submit on the held lane: see held

	snaps   []bucket.Snapshot
	allowed bool
}

type memoryKey [sha256.Size]byte

var asks = sync.Pool{New: func() any { return new(ask) }}

// newAsk returns an ask with a copy of the charges, because the ask can outlive the caller's slice.
func (s *Store) newAsk(charges []store.Charge, mode mete.Mode) *ask {
	a := asks.Get().(*ask)
	a.charges = append(a.charges[:0], charges...)
	if a.mode = mode; mode.DryRun {
		a.mode.ID = ""
	}
	if a.mode.ID != "" {
		a.memory = s.memoryKey("take", mode.ID, charges)
	}
	return a
}

// newRefund returns the ask of a refund. The IDs of refunds and of takes are separate.
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

func (a *ask) release() {
	clear(a.charges)
	a.charges, a.taken, a.snaps = a.charges[:0], a.taken[:0], a.snaps[:0]
	a.refund, a.retryMixed, a.onHeldLane, a.allowed, a.mode, a.Err = false, false, false, false, mete.Mode{}, nil
	asks.Put(a)
}

// isPlain reports whether a is a take from one token bucket without a mode or ID that a full bucket would admit.
// Plain takes of one bucket at one cost are charged together.
func (a *ask) isPlain() bool {
	if a.refund || len(a.charges) != 1 || a.charges[0].Penalty != nil || a.charges[0].Await > 0 || a.mode.ID != "" || a.mode.MaxWait != 0 || a.mode.DryRun || a.mode.UpTo {
		return false
	}
	l, cost := &a.charges[0].Limit, a.charges[0].Cost
	n, _ := l.Refill()
	return l.Algorithm() == bucket.AlgorithmContinuous && !l.Queued() && n > 0 && 0 < cost && cost <= l.Capacity()
}
