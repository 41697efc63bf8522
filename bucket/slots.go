// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A SlotID identifies the slots that one request holds, one in each of its [AlgorithmConcurrency] limits. A program that
// knows the ID can renew and release the slots, so it must be unguessable. The zero SlotID identifies no slot.
type SlotID [16]byte

// String returns the 32 hexadecimal digits that [ParseSlotID] reads.
func (id SlotID) String() string { return fmt.Sprintf("%x", id[:]) }

// ParseSlotID parses the result of [SlotID.String]. It refuses the zero SlotID.
func ParseSlotID(text string) (id SlotID, err error) {
	for i := 0; i < len(id) && 2*i+2 <= len(text); i++ {
		digits, err := strconv.ParseUint(text[2*i:2*i+2], 16, 8)
		if err != nil {
			break
		}
		id[i] = byte(digits)
	}
	if id == (SlotID{}) || id.String() != text {
		return SlotID{}, fmt.Errorf("bucket: slot %q: must be the 32 hexadecimal digits of a slot ID", text)
	}
	return id, nil
}

// Compare orders slot IDs by their bytes.
func (id SlotID) Compare(other SlotID) int { return strings.Compare(string(id[:]), string(other[:])) }

// A Slot is a place that a request holds under an [AlgorithmConcurrency] limit. It is free from End on.
type Slot struct {
	ID  SlotID
	End Instant
}

// Slots holds the slots of one key in the order of their ends. The zero Slots holds none. The set does not depend on the
// version of the limit: a changed limit counts the slots that are there.
//
// A slot ends by the clock of the store. Slots that have ended stay in the list until the next [Slots.Take] or
// [Slots.Renew] that is admitted. A clock that steps back may revive them, and then too few requests are admitted,
// never too many.
type Slots struct{ list []Slot }

// NewSlots returns the slots of a list, which it sorts.
func NewSlots(list []Slot) Slots {
	slices.SortFunc(list, func(a, b Slot) int {
		if a.End != b.End {
			return int(max(min(a.End-b.End, 1), -1))
		}
		return a.ID.Compare(b.ID)
	})
	return Slots{list}
}

// All returns all slots, including ended ones, in the order of their ends. The caller must not change them.
func (s *Slots) All() []Slot { return s.list }

// Unexpired returns the slots at now in the order of their ends. The caller must not change them.
func (s *Slots) Unexpired(now Instant) []Slot {
	n := 0
	for n < len(s.list) && s.list[n].End <= now {
		n++
	}
	return s.list[n:]
}

// findSlot returns the place of a slot, or -1. A slot without an ID is never found, so no other request can hold it.
func findSlot(list []Slot, id SlotID) int {
	if id == (SlotID{}) {
		return -1
	}
	for i := len(list) - 1; i >= 0; i-- { // a slot is rarely older than most others
		if list[i].ID == id {
			return i
		}
	}
	return -1
}

// Holds reports whether a request holds a slot at now.
func (s *Slots) Holds(id SlotID, now Instant) bool { return findSlot(s.Unexpired(now), id) >= 0 }

// Peek returns the decision of [Slots.Take] without a change.
func (s *Slots) Peek(l *Limit, id SlotID, now Instant, cost Tokens) Verdict {
	live := s.Unexpired(now)
	v := slotsVerdict(live, now)
	if cost > 0 && len(live) >= l.slots() && findSlot(live, id) < 0 {
		v.retry = int64(live[len(live)-l.slots()].End - now)
	}
	return v
}

// Take takes a slot for one lease from now on if fewer than the most slots of l are held. A cost of 0 takes none, and every
// other cost takes one. A request that already holds a slot keeps it, and its lease starts again. A denied take
// changes nothing.
func (s *Slots) Take(l *Limit, id SlotID, now Instant, cost Tokens) Verdict {
	v := s.Peek(l, id, now, cost)
	if v.retry != 0 || cost <= 0 {
		return v
	}
	s.put(l, id, now)
	return slotsVerdict(s.list, now)
}

// PeekRenewal returns the decision of [Slots.Renew] without a change.
func (s *Slots) PeekRenewal(id SlotID, now Instant) Verdict {
	live := s.Unexpired(now)
	v := slotsVerdict(live, now)
	if findSlot(live, id) < 0 {
		v.retry = never
	}
	return v
}

// Renew starts the lease of a slot again. It is denied, with a wait of [Never], if the request holds no slot.
func (s *Slots) Renew(l *Limit, id SlotID, now Instant) Verdict {
	v := s.PeekRenewal(id, now)
	if v.retry != 0 {
		return v
	}
	s.put(l, id, now)
	return slotsVerdict(s.list, now)
}

// put removes the slots that have ended, and gives id a slot with a new lease.
func (s *Slots) put(l *Limit, id SlotID, now Instant) {
	if gone := len(s.list) - len(s.Unexpired(now)); gone > 0 {
		s.list = slices.Delete(s.list, 0, gone)
	}
	if i := findSlot(s.list, id); i >= 0 {
		s.list = slices.Delete(s.list, i, i+1)
	}
	slot := Slot{ID: id, End: now + Instant(l.p)}
	at := len(s.list)
	for at > 0 && s.list[at-1].End > slot.End { // only after a changed lease or clock
		at--
	}
	s.list = slices.Insert(s.list, at, slot)
}

// Release frees a slot, and reports whether it was there.
func (s *Slots) Release(id SlotID) bool {
	i := findSlot(s.list, id)
	if i >= 0 {
		s.list = slices.Delete(s.list, i, i+1)
	}
	return i >= 0
}

func (l *Limit) slots() int { return int(l.capacity / Token) }

func slotsVerdict(live []Slot, now Instant) Verdict {
	if len(live) == 0 {
		return Verdict{}
	}
	return SlotsVerdict(len(live), time.Duration(live[0].End-now)*time.Microsecond, time.Duration(live[len(live)-1].End-now)*time.Microsecond, 0)
}

// SlotsVerdict returns the verdict about slots that a store keeps in its own format. The first slot of held ones ends after
// next, and the last one after last. retryAfter is as in [Snapshot].
func SlotsVerdict(held int, next, last, retryAfter time.Duration) Verdict {
	snap := Snapshot{RetryAfter: retryAfter}
	v := Verdict{spent: int64(held) * int64(Token), retry: snap.retryAfter()}
	if held > 0 {
		v.behind, v.prev = next.Microseconds(), last.Microseconds()
	}
	return v
}

// NextAfter returns the time until the next slot of an [AlgorithmConcurrency] limit ends, at the latest: its request may
// release it earlier. For other limits it is [Snapshot.FullAfter].
func (s Snapshot) NextAfter() time.Duration {
	if s.Limit.Algorithm() == AlgorithmConcurrency && s.spent > 0 {
		return duration(s.behind)
	}
	return s.FullAfter()
}

// A State of an [AlgorithmConcurrency] limit has no slots: it counts them, as if all of them ended at AsOf. Stores keep
// [Slots] instead. The functions below serve programs that compute with states of any limit.

func (l *Limit) slotsAt(s *State, now Instant) Verdict {
	if s.Spent <= 0 || s.AsOf <= now {
		return Verdict{}
	}
	left := int64(s.AsOf - now)
	return Verdict{spent: s.Spent, prev: left, behind: left}
}

func (l *Limit) retrySlots(v Verdict, cost Tokens) int64 {
	switch room := l.capacity - cost; {
	case cost < 0 || room < 0:
		return never
	case v.spent > int64(room):
		return v.prev
	}
	return 0
}

func (l *Limit) spendSlots(s *State, now Instant, cost Tokens) Verdict {
	v := l.slotsAt(s, now)
	if v.retry = l.retrySlots(v, cost); v.retry > 0 || cost <= 0 {
		return v
	}
	*s = State{Spent: v.spent + int64(cost), AsOf: max(s.AsOf, now+Instant(l.p)), Unit: 1}
	return l.slotsAt(s, now)
}
