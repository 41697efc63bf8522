// SPDX-License-Identifier: Apache-2.0

package topkeys

const none = -1

// smallest is the initial number of counters of a summary. Most rules need no more.
const smallest = 8

// A summary counts the keys of a stream with a bounded number of counters. Counters with the same count form a
// group. The groups form a list in order of their counts. Incrementing a counter and finding the lowest one take
// O(1). The zero summary is empty.
//
// The counts add up to total. A key without a counter has at most as many records as the lowest count, and none
// before the first key is displaced.
type summary struct {
	total     uint64
	displaced bool      // a key has lost its counter
	counters  []counter // counters in use; memory is reserved for the capacity
	groups    []group
	lowest    int32
	free      int32 // list of free groups
	table     table
}

// A group is a list of counters with the same count, in the order in which they reached it.
type group struct {
	count       uint64
	first, last int32 // counters
	lower, next int32 // neighboring groups; a free group has only next
}

func (s *summary) reset() {
	s.total, s.displaced = 0, false
	s.counters, s.groups = s.counters[:0], s.groups[:0]
	s.lowest, s.free = none, none
	s.table.reset()
}

// record counts e. It returns false if there is no memory. The counter keeps the first time of a key in before.
func (s *summary) record(e *event, most int, memory *memory, before *summary) bool {
	i := s.find(e)
	switch {
	case i != none:
	case len(s.counters) < cap(s.counters) || s.grow(most, memory):
		i = s.add()
		s.assign(i, e, 0, before)
	case len(s.counters) == 0:
		return false
	default:
		s.displaced = true
		least := &s.groups[s.lowest]
		i = least.first // the oldest counter in the group
		s.table.remove(s.counters[i].hash, i, s.counters)
		s.assign(i, e, least.count, before)
	}
	s.total++
	s.increment(i)
	c := &s.counters[i]
	c.last, c.retry = max(c.last, e.at), e.retry
	return true
}

func (s *summary) find(e *event) int32 {
	if len(s.counters) == 0 {
		return none
	}
	for slot := s.table.home(e.hash); ; slot = s.table.nextSlot(slot) {
		i := s.table.counterAt(slot)
		if i == none || s.counters[i].matches(e) {
			return i
		}
	}
}

func (s *summary) assign(i int32, e *event, over uint64, before *summary) {
	c := &s.counters[i]
	c.assign(e)
	c.over, c.first, c.last = over, e.at, e.at
	if j := before.find(e); j != none {
		c.first = before.counters[j].first
	}
	s.table.insert(e.hash, i)
}

func (s *summary) add() int32 {
	i := int32(len(s.counters))
	s.counters = s.counters[:i+1]
	g := s.newGroup(0, none, s.lowest)
	s.lowest = g
	s.join(i, g)
	return i
}

// grow makes room for more counters. It fails once a key has lost its counter: a new count would be unknown.
func (s *summary) grow(most int, memory *memory) bool {
	size := min(max(2*cap(s.counters), smallest), most)
	if s.displaced || size == cap(s.counters) || !memory.take((size-cap(s.counters))*counterBytes) {
		return false
	}
	if cap(s.counters) == 0 {
		s.lowest, s.free = none, none
	}
	// Allocate the exact size: append would round up, and the memory is accounted for.
	s.counters = append(make([]counter, 0, size), s.counters...)[:len(s.counters):size]
	s.groups = append(make([]group, 0, size+1), s.groups...)[: len(s.groups) : size+1]
	s.table.resize(size, s.counters)
	return true
}

func (s *summary) maxUnlisted() uint64 {
	if !s.displaced {
		return 0
	}
	return s.groups[s.lowest].count
}
