// SPDX-License-Identifier: Apache-2.0

package topkeys

// none is where a list ends.
const none = -1

// smallest is how many counters a summary begins with. Most rules need no more.
const smallest = 8

// A summary counts the keys of a stream in a bounded number of counters. Counters
// with the same count are a group, and the groups are a list from the lowest count
// to the highest: so a counter is moved on, and the lowest is found, in O(1). The
// zero summary has counted nothing.
//
// Invariants: the counts add up to total; a key without a counter was recorded at
// most as often as the lowest count says, and never while no key has lost its counter.
type summary struct {
	total     uint64
	displaced bool      // a key has lost its counter
	counters  []counter // in use; as many as its capacity are paid for
	groups    []group
	lowest    int32
	free      int32 // the list of groups that are not in use
	table     table
}

// A group are counters with the same count, in the order in which they reached it.
type group struct {
	count       uint64
	first, last int32 // counters
	lower, next int32 // groups; of the free ones next alone
}

// reset forgets all, and keeps the memory.
func (s *summary) reset() {
	s.total, s.displaced = 0, false
	s.counters, s.groups = s.counters[:0], s.groups[:0]
	s.lowest, s.free = none, none
	s.table.reset()
}

// record counts e. It reports false where there is no memory for any counter. Where
// before has the key, its first record is the counter's.
func (s *summary) record(e *event, most int, memory *memory, before *summary) bool {
	i := s.find(e)
	switch {
	case i != none:
	case len(s.counters) < cap(s.counters) || s.grow(most, memory):
		i = s.add()
		s.name(i, e, 0, before)
	case len(s.counters) == 0:
		return false
	default:
		s.displaced = true
		least := &s.groups[s.lowest]
		i = least.first // the one that has waited longest
		s.table.remove(s.counters[i].hash, i, s.counters)
		s.name(i, e, least.count, before)
	}
	s.total++
	s.increment(i)
	c := &s.counters[i]
	c.last, c.retry = max(c.last, e.at), e.retry
	return true
}

// find returns the counter of e's key, or none.
func (s *summary) find(e *event) int32 {
	if len(s.counters) == 0 {
		return none
	}
	for slot := s.table.home(e.hash); ; slot = s.table.following(slot) {
		i := s.table.at(slot)
		if i == none || s.counters[i].is(e) {
			return i
		}
	}
}

// name gives the counter i, which is not in the table, to e's key.
func (s *summary) name(i int32, e *event, over uint64, before *summary) {
	c := &s.counters[i]
	c.name(e)
	c.over, c.first, c.last = over, e.at, e.at
	if j := before.find(e); j != none {
		c.first = before.counters[j].first
	}
	s.table.insert(e.hash, i)
}

// add takes a counter into use, in a group of count 0.
func (s *summary) add() int32 {
	i := int32(len(s.counters))
	s.counters = s.counters[:i+1]
	g := s.newGroup(0, none, s.lowest)
	s.lowest = g
	s.join(i, g)
	return i
}

// grow makes room for more counters, if there may be more. Once a key has lost its
// counter there may not: a new one would not know how much it had.
func (s *summary) grow(most int, memory *memory) bool {
	size := min(max(2*cap(s.counters), smallest), most)
	if s.displaced || size == cap(s.counters) || !memory.take((size-cap(s.counters))*counterBytes) {
		return false
	}
	if cap(s.counters) == 0 {
		s.lowest, s.free = none, none
	}
	// Made to measure: append would round up, and what is kept is counted.
	s.counters = append(make([]counter, 0, size), s.counters...)[:len(s.counters):size]
	s.groups = append(make([]group, 0, size+1), s.groups...)[: len(s.groups) : size+1]
	s.table.resize(size, s.counters)
	return true
}

// unlisted is how often a key without a counter may have been recorded.
func (s *summary) unlisted() uint64 {
	if !s.displaced {
		return 0
	}
	return s.groups[s.lowest].count
}
