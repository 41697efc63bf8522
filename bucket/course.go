// SPDX-License-Identifier: Apache-2.0

package bucket

import "time"

// A Point is a level that a bucket has After a snapshot. A level below 0 is owed.
type Point struct {
	After time.Duration
	Level Tokens
}

// Level is what the bucket holds, with the room in its queue: below 0 where it owes.
func (s Snapshot) Level() Tokens {
	if owed := s.Owed(); owed > 0 && !s.Limit.Queued() {
		return -owed
	}
	return s.Room()
}

// Course returns the level from s until d later, if nothing more is taken. The level goes
// along straight lines between the points. A step is two points that are a microsecond
// apart. A stepped bucket with more than most steps has one line in place of them.
//
// The points are those of [Snapshot.Later], with the same exceptions. Between two points,
// the line is exact to two thousandths. A sliding window adds a 4096th of the tokens that
// were spent in it, because the engine counts in such parts.
func (s Snapshot) Course(d time.Duration, most int) []Point {
	until := int64(d / time.Microsecond)
	course := []Point{{0, s.Level()}}
	if until <= 0 {
		return course
	}
	add := func(us int64) {
		after := time.Duration(us) * time.Microsecond
		if us > int64(course[len(course)-1].After/time.Microsecond) {
			course = append(course, Point{after, s.Later(after).Level()})
		}
	}
	bends, steps := s.bends(until, most)
	for _, us := range bends {
		if us <= 0 || us > until {
			continue
		}
		if steps {
			add(us - 1)
		}
		add(us)
	}
	add(until)
	return course
}

// bends returns when the level changes its slope, in microseconds after s. With steps, it
// jumps at each of them.
func (s *Snapshot) bends(until int64, most int) (bends []int64, steps bool) {
	l, full := &s.Limit, s.fullAfter()
	switch l.Algorithm() {
	case SlidingWindow:
		return []int64{s.behind, sum(l.p, s.behind), sum(2*l.p, s.behind)}, false
	case SlidingLog:
		return []int64{full}, true
	case Continuous:
		return []int64{s.behind, full}, false
	}
	last := min(full, until)
	if s.spent == 0 || l.p <= 0 || last < s.behind {
		return nil, false
	}
	n := (last - s.behind) / l.p
	if n > int64(most) {
		return []int64{full}, false
	}
	for step := range n {
		bends = append(bends, s.behind+(step+1)*l.p)
	}
	return bends, true
}
