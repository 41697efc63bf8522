// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"encoding/binary"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// writeSlots writes the unexpired slots. It holds the mutex of one stripe at a time.
func (s *Store) writeSlots(e *encoder) error {
	for i := range s.slots.stripes {
		for _, block := range s.copySlots(e, i) {
			if err := e.writeBlock(slotsBlock, block); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) copySlots(e *encoder, stripe int) (blocks [][]byte) {
	t := &s.slots.stripes[stripe]
	t.mu.Lock()
	defer t.mu.Unlock()
	now, block := s.instant(), []byte(nil)
	for h, set := range t.sets {
		if live := set.held.Unexpired(now); len(live) > 0 {
			if block = e.addSlots(block, h, set.family, live); len(block) >= flushSize {
				blocks, block = append(blocks, block), nil
			}
		}
	}
	if len(block) > 0 {
		blocks = append(blocks, block)
	}
	return blocks
}

// addSlots appends the slots of one key: the hash of the key, its family, and the number of slots. Each slot is its ID, and
// its end after the end of the slot before it. The first end counts from the start of the save.
func (e *encoder) addSlots(b []byte, h hash, family string, live []bucket.Slot) []byte {
	b = appendHash(b, h)
	b = append(binary.AppendUvarint(b, uint64(len(family))), family...)
	b = binary.AppendUvarint(b, uint64(len(live)))
	last := e.saved
	for i := range live {
		b = append(b, live[i].ID[:]...)
		b = binary.AppendVarint(b, int64(live[i].End-last))
		last = live[i].End
	}
	return b
}

// readSlots reads the slots of one key, and keeps the unexpired ones.
func (r *restorer) readSlots(d *decoder) {
	h, family := d.hash(), string(d.bytes(int(d.number(store.MaxKeyBytes))))
	list := make([]bucket.Slot, d.number(bucket.MaxSlots))
	last := r.saved
	for i := range list {
		copy(list[i].ID[:], d.bytes(len(bucket.SlotID{})))
		end := d.instant(last)
		d.bad = d.bad || i > 0 && end < last || list[i].ID == bucket.SlotID{}
		list[i].End, last = end+r.shift, end
	}
	if d.bad {
		return
	}
	held := bucket.NewSlots(list)
	live := held.Unexpired(r.now)
	if len(live) == 0 {
		return
	}
	t := &r.store.slots.stripes[h.h0%slotStripes]
	if t.sets == nil {
		t.sets = map[hash]*slotSet{}
	}
	if d.bad = t.sets[h] != nil; d.bad { // duplicate
		return
	}
	t.sets[h] = &slotSet{bucket.NewSlots(live), family}
	r.store.slots.used.Add(int64(len(live)))
}
