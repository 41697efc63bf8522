// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"crypto/rand"
	"crypto/sha256"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

func holdsSlot(l *bucket.Limit) bool { return l.Algorithm() == bucket.AlgorithmConcurrency }

// slotID returns the ID of the slots of a request. Attempts with the same Request.ID and the same keys and costs have the same
// slots. The caller of the limiter chose that ID, so it is as secret as the caller wants.
func (e *evaluation) slotID(req *Request) bucket.SlotID {
	if e.slot != (bucket.SlotID{}) {
		return e.slot
	}
	if e.slot = req.Slot; e.slot != (bucket.SlotID{}) {
		return e.slot
	}
	if req.ID == "" {
		rand.Read(e.slot[:]) // never fails
		return e.slot
	}
	sum := sha256.Sum256(e.appendCharges(append([]byte("slot "+req.ID), 0)))
	copy(e.slot[:], sum[:])
	return e.slot
}

// setSlots completes the charges for slots. A charge for finished work takes none.
func (e *evaluation) setSlots(charges []store.Charge, mode Mode) {
	for i := range charges {
		c := &charges[i]
		if !holdsSlot(&c.Limit) {
			continue
		}
		if c.Slot, c.Cost = e.slot, min(c.Cost, 1)*bucket.Token; mode.MaxWait == bucket.Forced {
			c.Cost = 0
		}
	}
}
