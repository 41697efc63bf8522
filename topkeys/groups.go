// SPDX-License-Identifier: Apache-2.0

package topkeys

func (s *summary) increment(i int32) {
	from := s.counters[i].group
	g := &s.groups[from]
	next := g.next
	switch {
	case next != none && s.groups[next].count == g.count+1:
	case g.first == g.last: // the only counter, and the next count has no group
		g.count++
		return
	default:
		next = s.newGroup(g.count+1, from, next)
	}
	s.leave(i)
	s.join(i, next)
}

func (s *summary) newGroup(count uint64, lower, next int32) int32 {
	g := s.free
	if g != none {
		s.free = s.groups[g].next
	} else {
		g = int32(len(s.groups))
		s.groups = s.groups[:g+1]
	}
	s.groups[g] = group{count: count, first: none, last: none, lower: lower, next: next}
	if lower != none {
		s.groups[lower].next = g
	}
	if next != none {
		s.groups[next].lower = g
	}
	return g
}

func (s *summary) join(i, to int32) {
	g, c := &s.groups[to], &s.counters[i]
	c.group, c.before, c.after = to, g.last, none
	if g.last != none {
		s.counters[g.last].after = i
	} else {
		g.first = i
	}
	g.last = i
}

// leave removes counter i from its group. An empty group is freed.
func (s *summary) leave(i int32) {
	c := &s.counters[i]
	g := &s.groups[c.group]
	if c.before != none {
		s.counters[c.before].after = c.after
	} else {
		g.first = c.after
	}
	if c.after != none {
		s.counters[c.after].before = c.before
	} else {
		g.last = c.before
	}
	if g.first != none {
		return
	}
	if g.lower != none {
		s.groups[g.lower].next = g.next
	} else {
		s.lowest = g.next
	}
	if g.next != none {
		s.groups[g.next].lower = g.lower
	}
	g.next, s.free = s.free, c.group
}
