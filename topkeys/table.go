// SPDX-License-Identifier: Apache-2.0

package topkeys

// A table finds counters by the hash of their keys, with linear probing. It is at most half full.
type table []uint16 // 1 + counter index; 0 if empty

// A uint16 can represent every counter index.
const _ = uint16(MaxCounters + 1)

func (t table) home(hash uint64) int      { return int(hash & uint64(len(t)-1)) }
func (t table) nextSlot(slot int) int     { return (slot + 1) & (len(t) - 1) }
func (t table) counterAt(slot int) int32  { return int32(t[slot]) - 1 }
func (t table) reset()                    { clear(t) }
func (t table) distance(from, to int) int { return (to - from) & (len(t) - 1) }

// insert adds counter i, which must not be in the table.
func (t table) insert(hash uint64, i int32) {
	slot := t.home(hash)
	for t[slot] != 0 {
		slot = t.nextSlot(slot)
	}
	t[slot] = uint16(i + 1)
}

func (t table) remove(hash uint64, i int32, counters []counter) {
	gap := t.home(hash)
	for t.counterAt(gap) != i {
		gap = t.nextSlot(gap)
	}
	for slot := t.nextSlot(gap); t[slot] != 0; slot = t.nextSlot(slot) {
		home := t.home(counters[t.counterAt(slot)].hash)
		if t.distance(home, slot) >= t.distance(gap, slot) {
			t[gap], gap = t[slot], slot
		}
	}
	t[gap] = 0
}

func (t *table) resize(most int, counters []counter) {
	size := 2
	for size < 2*most {
		size *= 2
	}
	*t = make(table, size)
	for i := range counters {
		t.insert(counters[i].hash, int32(i))
	}
}
